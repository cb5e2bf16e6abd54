"""What is kept of the memory that frames took. Heaps are the C library's: where it is not glibc,
they are left as they are."""

from __future__ import annotations

import ctypes
import gc

LARGE_FRAME = 1 << 20
_MOST_HEAPS = -8  # as mallopt calls it, in glibc's malloc.h
_libc = ctypes.CDLL(None)


def share_one_heap() -> None:
    """Have all threads take memory from one heap; to be called before others are started.

    Otherwise each gets one of up to eight heaps for each core, and each heap keeps the room of the
    largest frames that came to it: a server with a thread for each connection seems to grow with
    every client. Python's own lock lets one thread at a time allocate anyway.
    """
    mallopt = getattr(_libc, "mallopt", None)
    if mallopt is not None:
        mallopt(_MOST_HEAPS, 1)


def give_back() -> None:
    """Return to the system what a client's large frames took; to be called when it has gone.

    An error that ended the conversation and the calls that it went through refer to each other,
    and to the frame: they are collected now, not when enough small objects have come together.
    """
    gc.collect()
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)
