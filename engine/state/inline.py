"""Housekeeping on the thread that asks for it."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any


class InlineExecutor(Executor):
    """Does work at once, so that a log is the same each time."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done
