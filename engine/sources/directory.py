"""A folder into which files are put, each line of which is a message.

Files are numbered through in the order in which they are taken: those that are new come in the
order of their names. That order is kept in an *index*, one entry for each file, made before any
message of it can be read; so message n is the same line of the same file after any restart, on
any worker, whatever is put into the folder later. Two drivers that do not know of each other take
the same files in the same order, since an entry is made only where there is none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bettong.engine.sources.base import Extent, PreparedSource, awaited
from bettong.engine.sources.lines import ChangedFileError, LineIndex, index_of
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import step
from bettong.engine.storage.log import DamageError
from bettong.engine.storage.sealed import sealed, unsealed
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

_settled: dict[Path, int] = {}
"""Of each index so many entries are durable, as far as this process knows."""
_REMEDY = "restore the folder of the index from a copy: without it messages have no numbers"


class NumberedFile(NamedTuple):
    """A file whose messages have numbers.

    Attributes:
        name: of the file in the folder.
        size: in bytes.
        first: number of the message that its first line is.
        lines: how many it has.
    """

    name: str
    size: int
    first: int
    lines: int


@dataclass(frozen=True)
class DirectorySource(PreparedSource):
    """The lines of a folder's files. Files must be whole when they get their name: write them
    elsewhere on the same file system and rename them. Names that begin with ``.`` or ``_`` are
    left alone. Subclasses may replace :meth:`new_names`.

    Attributes:
        directory: the folder; files stay in it.
        index: folder that keeps the files' order, such as one in the checkpoint.
        end: name of the file with which the stream ends; without it the stream ends with the
            files that are there once there is one.
    """

    directory: Path
    index: Path
    end: str | None = None

    def extent(self, upto: int, wait: float) -> Extent:
        return awaited(self._extent, upto, wait)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        with step(step_id, causes=causes, carries=[planned]):
            return [
                line
                for file in self.taken()
                if file.first < planned.stop and planned.start < file.first + file.lines
                for line in self._lines(file).read(
                    max(planned.start - file.first, 0), min(planned.stop - file.first, file.lines)
                )
            ]

    def locate(self, number: int) -> tuple[str, int]:
        """The file that a message is in, and where it begins there, in bytes.

        Raises:
            UsageError: there is no such message.
        """
        files = [file for file in self.taken() if file.lines]
        place = bisect_right([file.first for file in files], number) - 1
        if place < 0 or number >= files[place].first + files[place].lines:
            raise UsageError(f"{self.directory} has no message {number}")
        file = files[place]
        return file.name, self._lines(file).position(number - file.first)

    def taken(self) -> list[NumberedFile]:
        """The files that have numbers, in their order."""
        store = LocalStore(self.index)
        files = [self._entry(bytes(store.read(name)), name) for name in store.names("")]
        upto = 0
        for number, file in enumerate(files):
            if file.first != upto:
                raise DamageError(
                    f"{self.index}: an entry before {number:09d}.json is missing; {_REMEDY}"
                )
            upto += file.lines
        return files

    def new_names(self, files: Sequence[NumberedFile]) -> list[str]:
        """Files to be taken, in order; none after the one that ends the stream."""
        known = {file.name for file in files}
        if self.end in known:
            return []
        try:
            names = {p.name for p in self.directory.iterdir() if p.is_file()}
        except OSError as e:
            raise UsageError(f"source {self.directory} cannot be read: {e.strerror}") from e
        new = [n for n in names - known if not n.startswith((".", "_"))]
        return sorted(new, key=lambda name: (name == self.end, name))

    def _entry(self, content: bytes, name: str) -> NumberedFile:
        path = str(self.index / name)
        value = unsealed(content, path, _REMEDY)
        try:
            return NumberedFile(*value)
        except TypeError as e:
            raise DamageError(f"{path} is no entry of an index; {_REMEDY}") from e

    def _extent(self) -> Extent:
        store, files = LocalStore(self.index), self.taken()
        if len(files) > _settled.get(self.index, 0):
            store.settle("")  # who made them may have been killed before they were durable
        for name in self.new_names(files):
            lines = index_of(self.directory / name)
            lines.refresh()
            entry = NumberedFile(name, lines.size, _end(files), lines.lines)
            if not store.create(f"{len(files):09d}.json", sealed(entry)):
                return self._extent()  # another driver takes files too
            files.append(entry)
        _settled[self.index] = len(files)
        over = bool(files) and self.end in (None, files[-1].name)
        return Extent(_end(files), over)

    def _lines(self, file: NumberedFile) -> LineIndex:
        lines = index_of(self.directory / file.name)
        lines.refresh()
        if (lines.size, lines.lines) != (file.size, file.lines):
            raise ChangedFileError(
                f"source file {self.directory / file.name} had {file.size} bytes when its messages "
                f"were numbered and has {lines.size}, {file.lines} lines and has {lines.lines}: "
                "put it back as it was"
            )
        return lines


def _end(files: Sequence[NumberedFile]) -> int:
    return files[-1].first + files[-1].lines if files else 0
