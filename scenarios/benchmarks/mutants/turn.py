"""Searches that take turns: each goes on by some runs and then stands still, with all that it has
learned, while others have their turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any


class OverError(Exception):
    """There is no time for another run."""


class Turn:
    """Whether a search may begin a run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._left = 0
        self._under_way = 0
        self._is_over = False

    @contextmanager
    def a_run(self) -> Iterator[None]:
        """One run, which waits until it may begin; raises OverError when it will not any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._left or self._is_over)
            if self._is_over:
                raise OverError
            self._left -= 1
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def have(self, runs: int, search: Future[Any]) -> None:
        """Let a search begin so many runs, and wait until they, or all of it, have ended."""

        def has_ended(_: Future[Any]) -> None:
            with self._changed:
                self._changed.notify_all()

        with self._changed:
            self._left = runs
            self._changed.notify_all()
        search.add_done_callback(has_ended)
        with self._changed:
            self._changed.wait_for(lambda: search.done() or not (self._left or self._under_way))

    def end(self) -> None:
        """No run begins any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
