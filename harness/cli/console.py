"""The terminal, or the pipe, that commands print to."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import TextIO

from rich.console import Console


class ToReader(Console):
    """Raises BrokenPipeError, as any other way to print does, when whoever read has gone; rich
    itself would end the process with a code of its own."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def unless_gone(say: Callable[[], object], stream: TextIO) -> None:
    """Print to a stream; nothing more is printed there when whoever read it has gone, as ``head``
    does once it has its lines."""
    try:
        say()
    except BrokenPipeError:
        with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), stream.fileno())
