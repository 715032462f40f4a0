// What a widget's script takes for its kernel's model: traits, and a function that answers when they change.

export class Traits {
  /**
   * @param {object} values traits by name
   * @param {function} answer from the traits' values and the names of those that changed, to traits, in a promise; what
   *   it throws becomes the trait `message`
   */
  constructor(values, answer) {
    this.values = { message: "", ...values };
    this.answer = answer;
    this.listeners = new Map();
    this.changed = new Set();
    this.working = null;
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (JSON.stringify(this.values[name]) === JSON.stringify(value)) return;
    this.changed.add(name);
    this.put({ [name]: value });
  }

  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) || []), listener]);
  }

  off(event, listener) {
    this.listeners.set(event, (this.listeners.get(event) || []).filter((each) => each !== listener));
  }

  put(values) {
    Object.assign(this.values, values);
    for (const name of Object.keys(values)) (this.listeners.get(`change:${name}`) || []).forEach((each) => each());
  }

  /** Answers what has changed; while an answer is under way, only the newest state waits for the next. */
  save_changes() {
    this.working ||= this.work().finally(() => {
      this.working = null;
    });
    return this.working;
  }

  async work() {
    while (this.changed.size) {
      const names = [...this.changed];
      this.changed.clear();
      try {
        this.put({ message: "", ...(await this.answer(this.values, names)) });
      } catch (error) {
        this.put({ message: error.message });
      }
    }
  }
}
