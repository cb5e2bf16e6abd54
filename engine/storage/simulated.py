"""A disk in memory that shows every state in which a crash could leave it.

What was written but not synced may be lost from any byte on, or read as zeros; names that were
made, changed or removed are durable only once their directory is synced. Nothing else is lost,
and names change in the order in which the program changed them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import BinaryIO

from bettong.engine.storage.disk import AppendFile, Buffer

Image = dict[Path, bytes]
_Names = dict[Path, "_File"]


class _File:
    """Content, and how it came about since it was last synced."""

    def __init__(self, disk: SimulatedDisk, content: bytes) -> None:
        self._disk = disk
        self.content = content
        self.durable = content
        self.pending: list[bytes | int] = []  # data that was appended, or a size it was cut to

    def write(self, data: Buffer) -> None:
        self.content += bytes(data)
        self.pending.append(bytes(data))
        self._disk.changed(self)

    def truncate(self, size: int) -> None:
        self.content = _cut(self.content, size)
        self.pending.append(size)
        self._disk.changed(self)

    def sync(self) -> None:
        self.durable = self.content
        self.pending.clear()
        self._disk.changed(self)

    def close(self) -> None:
        pass

    def after_crash(self, every_byte: bool) -> Iterator[bytes]:
        """What may be found in it."""
        content = self.durable
        yield content
        for place, change in enumerate(self.pending):
            if isinstance(change, int):
                content = _cut(content, change)
            else:
                if every_byte and place == len(self.pending) - 1:
                    for kept in range(1, len(change)):
                        yield content + change[:kept]
                        yield content + change[:kept] + bytes(len(change) - kept)
                    yield content + bytes(len(change))
                content += change
        if self.pending:
            yield content


class SimulatedDisk:
    """The file operations of :class:`bettong.engine.storage.disk.Disk`.

    Args:
        image: the files to begin with, all durable.
        on_change: called after each operation that changes what a crash could leave.
    """

    def __init__(
        self,
        image: Mapping[Path, bytes] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._files: _Names = {p: _File(self, content) for p, content in (image or {}).items()}
        self._durable_names: _Names = dict(self._files)
        self._name_changes: list[_Names] = []  # the names after each change not yet synced
        self._on_change = on_change
        self._last: _File | None = None

    def image(self) -> Image:
        """What the files hold now: what a process finds that follows a killed one."""
        return {path: file.content for path, file in self._files.items()}

    def images(self) -> Iterator[Image]:
        """Every state, without repetition, that a crash of the machine could leave now. Of the
        file that changed last each byte counts; others are as last synced, or whole."""
        seen: set[tuple[tuple[Path, bytes], ...]] = set()
        for names in (self._durable_names, *self._name_changes):
            choices = (set(file.after_crash(file is self._last)) for file in names.values())
            for contents in product(*choices):
                image = dict(zip(names, contents, strict=True))
                key = tuple(sorted(image.items()))
                if key not in seen:
                    seen.add(key)
                    yield image

    def changed(self, file: _File | None = None) -> None:
        """Note what has changed last."""
        self._last = file
        self._on_change()

    def append_to(self, path: Path) -> AppendFile:
        if path not in self._files:
            self._files[path] = _File(self, b"")
            self._names_changed()
        return self._files[path]

    def open(self, path: Path) -> BinaryIO:
        return io.BytesIO(self._found(path).content)

    def size(self, path: Path) -> int:
        return len(self._found(path).content)

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self._files if path.parent == directory)

    def rename(self, source: Path, target: Path) -> None:
        self._files[target] = self._found(source)
        del self._files[source]
        self._names_changed()

    def link(self, source: Path, target: Path) -> None:
        if target in self._files:
            raise FileExistsError(target)
        self._files[target] = self._found(source)
        self._names_changed()

    def remove(self, path: Path) -> None:
        self._found(path)
        del self._files[path]
        self._names_changed()

    def make_directory(self, path: Path) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        kept = {p: f for p, f in self._durable_names.items() if p.parent != path}
        synced = {p: f for p, f in self._files.items() if p.parent == path}
        self._durable_names = kept | synced
        before, self._name_changes = self._name_changes, []
        for names in before:
            rest = {p: f for p, f in names.items() if p.parent != path} | synced
            if rest not in (self._durable_names, *self._name_changes[-1:]):
                self._name_changes.append(rest)
        self.changed()

    def _names_changed(self) -> None:
        self._name_changes.append(dict(self._files))
        self.changed()

    def _found(self, path: Path) -> _File:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(path) from None


def _cut(content: bytes, size: int) -> bytes:
    return content[:size] + bytes(max(0, size - len(content)))
