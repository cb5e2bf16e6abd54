"""A disk in memory that shows every state in which a crash could leave it, by
:mod:`bettong.engine.storage.durability`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from bettong.engine.storage.disk import AppendFile, Buffer
from bettong.engine.storage.durability import Image as Image
from bettong.engine.storage.durability import Inode, Volume


class _File:
    def __init__(self, disk: SimulatedDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode

    def write(self, data: Buffer) -> None:
        self._disk.volume.append(self._inode, bytes(data))
        self._disk.changed()

    def truncate(self, size: int) -> None:
        self._disk.volume.truncate(self._inode, size)
        self._disk.changed()

    def sync(self) -> None:
        self._disk.volume.sync(self._inode)
        self._disk.changed()

    def close(self) -> None:
        pass


class SimulatedDisk:
    """The file operations of :class:`bettong.engine.storage.disk.Disk`.

    Args:
        image: the files to begin with, all durable.
        on_change: called after each operation that changes what a crash could leave.

    Attributes:
        volume: the files, and what of them is not durable.
    """

    def __init__(
        self,
        image: Mapping[Path, bytes] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.volume = Volume()
        for path, content in (image or {}).items():
            self.volume.exists(path, content)
        self._on_change = on_change

    def image(self) -> Image:
        """What the files hold now: what a process finds that follows a killed one."""
        return self.volume.image()

    def images(self) -> Iterator[Image]:
        """Every state, without repetition, that a crash of the machine could leave now."""
        return self.volume.images()

    def changed(self) -> None:
        """Tell that a crash could leave something else now."""
        self._on_change()

    def append_to(self, path: Path) -> AppendFile:
        if path not in self.volume.names:
            self.volume.create(path)
            self.changed()
        return _File(self, self.volume.names[path])

    def open(self, path: Path) -> BinaryIO:
        return io.BytesIO(self._found(path).content)

    def size(self, path: Path) -> int:
        return len(self._found(path).content)

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.volume.names if path.parent == directory)

    def rewrite(self, path: Path, offset: int, data: Buffer) -> None:
        self.volume.rewrite(self._found(path), offset, len(data))

    def rename(self, source: Path, target: Path) -> None:
        self._found(source)
        self.volume.rename(source, target)
        self.changed()

    def link(self, source: Path, target: Path) -> None:
        if target in self.volume.names:
            raise FileExistsError(target)
        self._found(source)
        self.volume.link(source, target)
        self.changed()

    def remove(self, path: Path) -> None:
        self._found(path)
        self.volume.remove(path)
        self.changed()

    def make_directory(self, path: Path) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        self.volume.sync_directory(path)
        self.changed()

    def _found(self, path: Path) -> Inode:
        try:
            return self.volume.names[path]
        except KeyError:
            raise FileNotFoundError(path) from None
