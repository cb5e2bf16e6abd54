"""What a search has learned lasts until its end: the garbage collector need not look through it
again and again, while every thread of every run waits."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY = 16


@contextmanager
def lasting() -> Iterator[Callable[[], None]]:
    """Yields what is to be called after each run: now and then all objects that are alive are left
    out of later collections, until the end."""
    runs = 0

    def learned() -> None:
        nonlocal runs
        runs += 1
        if runs % _EVERY == 0:
            gc.collect()  # what is garbage now would never be found later
            gc.freeze()

    try:
        yield learned
    finally:
        gc.unfreeze()
