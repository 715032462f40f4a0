// Traits of the kernel's model, from and to the page.

/** Sends a trait to the kernel; while it is busy, only the newest value waits. */
export function send(model, changes) {
  for (const [name, value] of Object.entries(changes)) model.set(name, value);
  model.save_changes();
}

/** Calls `show` now and whenever the trait changes. */
export function listen(model, names, show) {
  for (const name of [].concat(names)) model.on(`change:${name}`, show);
  show();
}

/** Calls `draw` once before the next frame, however often it is asked. */
export function onceAFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/** Bytes of a trait as numbers. */
export function numbers(view, Type) {
  if (!view || !view.byteLength) return new Type(0);
  return new Type(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/**
 * A model in front of the model, for what the browser draws without the kernel. What is set here is seen here at once;
 * the kernel hears of it when no change has come for a moment, and its echo does not undo what was set since.
 */
export function unhurried(model) {
  const waiting = new Map(), listeners = new Map();
  let timer = null;
  const flush = () => {
    clearTimeout(timer);
    for (const [name, value] of waiting) model.set(name, value);
    waiting.clear();
    model.save_changes();
  };
  return {
    get: (name) => (waiting.has(name) ? waiting.get(name) : model.get(name)),
    set(name, value) {
      if (Object.is(this.get(name), value)) return;
      waiting.set(name, value);
      (listeners.get(`change:${name}`) || []).forEach((listener) => listener());
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) || []), listener]);
      model.on(event, () => waiting.has(event.slice("change:".length)) || listener());
    },
    save_changes() {
      clearTimeout(timer);
      timer = setTimeout(flush, 200);
    },
    flush, // at once
  };
}
