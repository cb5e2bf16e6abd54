"""What cyclic garbage collection may cost a batch."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_seen = 0


@contextmanager
def without_collection() -> Iterator[None]:
    """Without cyclic garbage collection, which costs more than the user's function when many
    small objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def freeze_what_is_loaded() -> None:
    """Keep what this process has loaded out of every later collection.

    A worker of pyspark collects all garbage after each task, and looking through all modules
    again each time took two thirds of its CPU. For processes that only do tasks; called at the
    beginning of each, it does something only when modules have been loaded since.
    """
    global _seen
    if len(sys.modules) != _seen:
        gc.freeze()
        _seen = len(sys.modules)
