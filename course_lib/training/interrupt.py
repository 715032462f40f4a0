"""Ctrl-C at a safe moment."""

import signal
import threading


class Interrupt:
    """Inside `with Interrupt() as interrupt`, the first Ctrl-C only sets `interrupt.requested`; the second one raises.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self):
        self.requested = False

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *exception) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, number, frame) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
