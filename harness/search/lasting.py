"""A search learns while runs go on, whose steps threads of the same process answer: none of them is
to wait for it long. What it has learned lasts until its end, so that the garbage collector need not
look through it again and again."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY = 16
_SWITCH_S = 0.0005
"""After so long a thread lets others go on: a tenth of Python's own, for a step is answered in as
little."""


@contextmanager
def lasting() -> Iterator[Callable[[], None]]:
    """Until the end, threads that answer get their turn soon. Yields what is to be called after
    each run: now and then all objects that are alive are left out of later collections."""
    runs = 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)

    def learned() -> None:
        nonlocal runs
        runs += 1
        if runs % _EVERY == 0:
            gc.collect()  # what is garbage now would never be found later
            gc.freeze()

    try:
        yield learned
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()
