"""A command runs in a process of its own, so that no code that it loads can choose the exit code.

The parent waits and passes on what the command says at its end. A process that ends without a
word, by ``os._exit`` in a user's code or a crash of an extension, has no result: 3. A module that
a user named, and that ends the process as it is imported or does not return within a limit: 2.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

from bettong.harness.cli.printing import complain
from bettong.lineage.user_code import watch

EXIT_USAGE, EXIT_UNKNOWN = 2, 3
LOAD_LIMIT_S = 60.0
ENV_LIMIT = "BETTONG_LOAD_LIMIT_S"
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.2
_ALIKE_S = 0.1
"""Of a signal to the whole group, as Ctrl-C in a terminal is one, parent and child hear within this
time; nobody sends two so fast."""
_GRACE_S = 30.0  # between a command's last word and the end of its process


def supervised(command: Callable[[], int]) -> int:
    """Run a command in a child; returns the exit code that it gave, in this process alone."""
    _open_what_is_closed()
    status_read, status_write = os.pipe()
    heard_read, heard_write = os.pipe()
    alive, lives = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(status_read)
        os.close(heard_read)
        os.close(lives)
        _in_child(command, status_write, heard_write, alive)
    os.close(status_write)
    os.close(heard_write)
    os.close(alive)
    try:
        return _Parent(child, status_read, heard_read).wait()
    finally:
        os.close(lives)


def _open_what_is_closed() -> None:
    """Who has closed a standard stream hears nothing on it; no pipe or socket takes its place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _in_child(command: Callable[[], int], status_write: int, heard_write: int, alive: int) -> None:
    os.set_inheritable(status_write, False)
    os.set_blocking(heard_write, False)
    signal.set_wakeup_fd(heard_write, warn_on_full_buffer=False)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    watch(lambda what: _say(status_write, {"loading": what}))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = EXIT_UNKNOWN
    try:
        code = command()
    finally:
        _say(status_write, {"code": code})
        atexit._run_exitfuncs()
        os._exit(code)  # whoever called the parent is in this process, too


def _end_with_parent(alive: int) -> None:
    """Die as the parent does, be it killed."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _say(pipe: int, message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(pipe, json.dumps(message).encode() + b"\n")


@dataclass
class _Parent:
    child: int
    status: int
    heard: int
    code: int | None = None
    loading: str = ""
    noted: dict[int, float] = field(default_factory=dict)
    heard_at: dict[int, float] = field(default_factory=dict)
    passed_on: set[int] = field(default_factory=set)
    signalled: int = 0

    def wait(self) -> int:
        """The child's own code, or the one reported in its place."""
        for number in _PASSED_ON:
            signal.signal(number, self._note)
        limit = _limit()
        status = self._listen(limit)
        if status is None:
            complain(
                f"{self.loading}: loading it did not end within {limit:g} s: what a module does "
                f"when it is imported has to return (more time: {ENV_LIMIT})"
            )
            return EXIT_USAGE
        if self.code is not None:
            return self.code
        if self.signalled:
            return 128 + self.signalled
        complain(f"no result: {_ended(status)}{self._where()}")
        return EXIT_USAGE if self.loading and os.WIFEXITED(status) else EXIT_UNKNOWN

    def _listen(self, limit: float) -> int | None:
        """Take in what the child says until it has ended; its status, or None when it was ended
        because loading took too long."""
        rest, since, open_ = b"", time.monotonic(), True
        with selectors.DefaultSelector() as selector:
            selector.register(self.status, selectors.EVENT_READ)
            selector.register(self.heard, selectors.EVENT_READ)
            while True:
                if not open_:
                    time.sleep(_POLL_S / 10)
                elif ready := selector.select(_POLL_S):
                    if any(key.fd == self.heard for key, _ in ready):
                        self._hear(selector)
                        continue
                    data = os.read(self.status, 1 << 16)
                    if not data:
                        open_ = False
                        selector.unregister(self.status)
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        self._take(json.loads(line))
                        since = time.monotonic()
                    if data:
                        continue
                ended, status = os.waitpid(self.child, os.WNOHANG)
                if ended:
                    return status
                self._pass_on()
                too_long = limit if self.loading else _GRACE_S
                waits = bool(self.loading) or self.code is not None
                if waits and time.monotonic() - since > too_long:
                    os.kill(self.child, signal.SIGKILL)
                    _, status = os.waitpid(self.child, 0)
                    return None if self.loading else status

    def _take(self, message: dict[str, object]) -> None:
        if isinstance(code := message.get("code"), int):
            self.code = code
        self.loading = str(message.get("loading", ""))

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signalled = number
        now = time.monotonic()
        if now - self.heard_at.get(number, -_ALIKE_S) >= _ALIKE_S:
            self.noted[number] = now

    def _hear(self, selector: selectors.BaseSelector) -> None:
        """The child has had signals itself: they are not for it a second time."""
        numbers = os.read(self.heard, 64)
        if not numbers:
            selector.unregister(self.heard)
        for number in numbers:
            if number in self.passed_on:
                self.passed_on.remove(number)
                continue
            self.heard_at[number] = time.monotonic()
            self.noted.pop(number, None)

    def _pass_on(self) -> None:
        """Hand on the signals that the child has not had."""
        now = time.monotonic()
        for number in [n for n, at in self.noted.items() if now - at >= _ALIKE_S]:
            del self.noted[number]
            self.passed_on.add(number)
            os.kill(self.child, number)

    def _where(self) -> str:
        return f", while it loaded {self.loading}" if self.loading else ""


def _ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"the process died of {signal.Signals(os.WTERMSIG(status)).name}"
    return (
        f"the process ended itself with exit code {os.WEXITSTATUS(status)}, as os._exit in a "
        "module does"
    )


def _limit() -> float:
    try:
        return max(0.1, float(os.environ.get(ENV_LIMIT, LOAD_LIMIT_S)))
    except ValueError:
        return LOAD_LIMIT_S
