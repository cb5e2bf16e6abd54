"""What makes a command a service: signals that end it well, and a log that programs read."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Literal, get_args

LogFormat = Literal["text", "json"]
LOG_FORMATS = get_args(LogFormat)

log = logging.getLogger("bettong")

_SIGNALS = signal.SIGTERM, signal.SIGINT


class Stop(threading.Event):
    """Set by the first SIGTERM or SIGINT; the second does what it does elsewhere.

    Attributes:
        by: the signal's name; empty while none has come.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by = ""

    def listen(self) -> None:
        """From now on signals are taken, also from whoever has taken them for itself since the last
        call. Outside the main thread, where no signal arrives, nothing changes."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL if self.is_set() else self._asked)

    def _asked(self, number: int, _: FrameType | None) -> None:
        self.by = signal.Signals(number).name
        self.set()
        self.listen()
        log.warning("%s: the run ends after the batch at hand; once more ends it at once", self.by)


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """While this lasts SIGTERM and SIGINT ask the run to end, be it only about to begin."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    stop.listen()
    try:
        yield stop
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


class JsonLines(logging.Formatter):
    """A line of JSON for each record: ``time``, ``level``, ``message``, where there is one
    ``error``, and what the record was given as ``extra={"fields": {…}}``."""

    def format(self, record: logging.LogRecord) -> str:
        value = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            value["error"] = self.formatException(record.exc_info)
        return json.dumps(value, default=str)


@contextmanager
def log_as(chosen: LogFormat) -> Iterator[None]:
    """While this lasts the log goes to stderr: as text what is wrong alone, as lines of JSON also
    what goes as it should."""
    if chosen == "text":
        yield
        return
    handler, level, propagates = logging.StreamHandler(sys.stderr), log.level, log.propagate
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    except Exception as e:
        log.error("%s", e)  # of all events the one that somebody will look for
        raise
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagates
