"""The lines of the user's code that a run has begun, each noted at once: whoever is killed has told
of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple


class RanLine(NamedTuple):
    """A line that has begun.

    Attributes:
        file: in which it stands.
        function: whose it is, by its name.
        first: where that begins: functions are called alike.
        number: of the line.
    """

    file: str
    function: str
    first: int
    number: int


class RanLines:
    """Notes each line of this process once in a run.

    Args:
        write: is given the run's file and what is to be written to it.
    """

    def __init__(self, write: Callable[[Path, str], None]) -> None:
        self._write = write
        self._file: Path | None = None
        self._known: set[tuple[object, int]] = set()

    def to(self, file: str | None) -> None:
        """From now on lines are noted in this file, of another run perhaps; None: nowhere."""
        path = Path(file) if file else None
        if path != self._file:
            self._file = path
            self._known.clear()

    def begins(self, frame: FrameType) -> None:
        """A line of this frame begins."""
        code, number = frame.f_code, frame.f_lineno
        if self._file is None or (code, number) in self._known:
            return
        self._known.add((code, number))
        first, name = code.co_firstlineno, code.co_name
        self._write(self._file, f"{number} {first} {name} {code.co_filename}")


def noted_in(directory: Path) -> Path:
    """Where the lines of the run with this folder are noted: beside it, for at a crash the folder
    becomes again what it was."""
    return directory.with_name(f"{directory.name}-lines")


def noted(directory: Path) -> set[RanLine]:
    """The lines of the run with this folder, whose notes are used up."""
    file = noted_in(directory)
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return set()
    file.unlink()
    found = (line.split(" ", 3) for line in text.splitlines())
    return {RanLine(path, name, int(first), int(number)) for number, first, name, path in found}
