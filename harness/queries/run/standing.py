"""Where a query that says nothing stands, in the lines of those who wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bettong.harness.spark.driver import Frame, Stack
from bettong.lineage.secrets import masked
from bettong.lineage.user_code import is_installed

_HARNESS = Path(__file__).parents[2]
_SHIPPED = "bettong/scenarios/"
"""What ships is judged as a user's own."""


def stands(stacks: Sequence[Stack]) -> str:
    """To be added to what is said of a query that does nothing: the last of its own lines that a
    thread has come to, and the call that does not return. Empty when no thread is in its code."""
    for stack in stacks:
        own = [frame for frame in stack if _is_own(frame)]
        if own:
            last = stack[-1]
            within = "" if last == own[-1] else f", which waits in {_place(last)}"
            return masked(f"; it stands in {_place(own[-1])}{within}")
    return ""


def _is_own(frame: Frame) -> bool:
    path = Path(frame.file)
    if _SHIPPED in path.as_posix():
        return True
    return path.is_absolute() and not is_installed(frame.file) and _HARNESS not in path.parents


def _place(frame: Frame) -> str:
    code = f": {frame.code}" if frame.code else ""
    return f"{Path(frame.file).name}, line {frame.line}, in {frame.function}{code}"
