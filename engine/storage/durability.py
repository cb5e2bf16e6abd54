"""What a crash of the machine can take away: the one model of it.

The simulated disk is this model; what the real one has not made durable yet is replayed into it
(:mod:`bettong.engine.storage.disk_log`). Bytes are durable once their file is synced, names once
their directory is. What is not durable may be lost, but names go in the order in which the
program changed them, newest first, and so do the changes of one file; of the last write any part
may be kept, or read as zeros.

A sync that fails gives the bytes up that it was to write: they are in memory still, where
programs read them, and no later sync writes them, although it says that all is well (Rebello et
al., *Can Applications Recover from fsync Failures?*, ATC 2020). They are zeros on the disk then,
unless they have been written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal

Image = dict[Path, bytes]
Keep = Literal["nothing", "names", "content", "half", "zeros"] | int
"""What a power cut leaves of what is not durable: nothing of it; all names and none of the bytes
(a rename that overtakes its data); all bytes and none of the names; all but the last change,
and of that, if it is a write, half, or zeros in its place; or the so many oldest changes."""

KEEPS: Sequence[Keep] = ("nothing", "names", "content", "half", "zeros")


@dataclass(eq=False, slots=True)
class Inode:
    """A file or a directory, whatever its names.

    Attributes:
        given_up: ranges of bytes that no sync writes any more.
    """

    content: bytes = b""
    durable: bytes = b""
    is_directory: bool = False
    given_up: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class NameChange:
    """Names that were given (an inode) or taken away (None) at once.

    Attributes:
        origin: of whoever did it, for those who ask why.
    """

    names: Mapping[Path, Inode | None]
    origin: str = ""

    def __str__(self) -> str:
        return " and ".join(
            f"{'no name' if inode is None else 'name'} {path.name}"
            for path, inode in self.names.items()
        )


@dataclass(frozen=True, eq=False, slots=True)
class ContentChange:
    """Bytes that were appended to a file, or the size that it was cut to."""

    inode: Inode
    change: bytes | int
    origin: str = ""

    def on(self, content: bytes) -> bytes:
        """The content after it."""
        if isinstance(self.change, int):
            return cut_to(content, self.change)
        return content + self.change

    def __str__(self) -> str:
        if isinstance(self.change, int):
            return f"a cut to {self.change} bytes"
        return f"{len(self.change)} bytes"


Change = NameChange | ContentChange


@dataclass(eq=False, slots=True)
class Volume:
    """Files, and what of them is not durable.

    Attributes:
        names: the files as programs see them.
        durable: the names that no crash can take away.
        changes: what is not durable, oldest first.
        origin: who does what is done next.
    """

    names: dict[Path, Inode] = field(default_factory=dict)
    durable: dict[Path, Inode] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    origin: str = ""

    def exists(self, path: Path, content: bytes) -> None:
        """A file is there that somebody else has made; it is durable."""
        if path not in self.names:
            self.names[path] = self.durable[path] = Inode(content, content)

    def gone(self, path: Path) -> None:
        """A file is not there any more, as somebody else has removed it; that is durable."""
        if self.names.pop(path, None) is not None:
            self.durable.pop(path, None)

    # --- what programs do

    def create(self, path: Path, *, is_directory: bool = False) -> Inode:
        """A new and empty file, or a directory."""
        inode = Inode(is_directory=is_directory)
        self._name({path: inode})
        return inode

    def append(self, inode: Inode, data: bytes) -> None:
        self._fill(ContentChange(inode, data, self.origin))

    def truncate(self, inode: Inode, size: int) -> None:
        self._fill(ContentChange(inode, size, self.origin))
        inode.given_up = [(a, min(b, size)) for a, b in inode.given_up if a < size]

    def rewrite(self, inode: Inode, offset: int, size: int) -> None:
        """Bytes that are there are written once more, as they are: the next sync writes them."""
        end = offset + size
        parts = (p for a, b in inode.given_up for p in ((a, min(b, offset)), (max(a, end), b)))
        inode.given_up = [(a, b) for a, b in parts if a < b]

    def sync(self, inode: Inode) -> None:
        inode.durable = inode.content
        for a, b in inode.given_up:
            inode.durable = b"".join((inode.durable[:a], bytes(b - a), inode.durable[b:]))
        self.changes = [
            c for c in self.changes if not (isinstance(c, ContentChange) and c.inode is inode)
        ]

    def sync_failed(self, inode: Inode) -> None:
        """What was written to a file since its last sync is given up."""
        own = (c for c in self.changes if isinstance(c, ContentChange) and c.inode is inode)
        cuts = (c.change for c in own if isinstance(c.change, int))
        start = min([len(inode.durable), *cuts])
        if start < len(inode.content):
            inode.given_up.append((start, len(inode.content)))

    def rename(self, source: Path, target: Path) -> None:
        if self.names.get(target) is not self.names[source]:  # else POSIX leaves both names
            self._name({source: None, target: self.names[source]})

    def link(self, source: Path, target: Path) -> None:
        self._name({target: self.names[source]})

    def remove(self, path: Path) -> None:
        self._name({path: None})

    def sync_directory(self, directory: Path) -> None:
        left: list[Change] = []
        for change in self.changes:
            if isinstance(change, NameChange):
                here = {p: i for p, i in change.names.items() if p.parent == directory}
                _give(self.durable, here)
                rest = {p: i for p, i in change.names.items() if p not in here}
                if not rest:
                    continue
                change = replace(change, names=rest)
            left.append(change)
        self.changes = left

    # --- what a crash leaves

    def image(self) -> Image:
        """What the files hold now: what a process finds that follows a killed one."""
        return {p: inode.content for p, inode in self.names.items() if not inode.is_directory}

    def survivors(self, keep: Keep) -> Image:
        """What the files hold after a power cut."""
        names = self.kept_names(keep)
        contents: dict[int, bytes] = {}
        for change in self.kept(keep):
            if isinstance(change, ContentChange):
                before = contents.get(id(change.inode), change.inode.durable)
                contents[id(change.inode)] = change.on(before)
        gone = {p for p, i in self.names.items() if i.is_directory and p not in names}
        return {
            path: contents.get(id(inode), inode.durable)
            for path, inode in names.items()
            if not inode.is_directory and not (gone and gone.intersection(path.parents))
        }

    def kept(self, keep: Keep) -> list[Change]:
        """Of what is not durable that which is kept; a write may be kept in part."""
        changes = self.changes
        match keep:
            case "nothing":
                return []
            case "names":
                return [c for c in changes if isinstance(c, NameChange)]
            case "content":
                return [c for c in changes if isinstance(c, ContentChange)]
            case "half":
                return [*changes[:-1], *map(_half, filter(_is_write, changes[-1:]))]
            case "zeros":
                return [*changes[:-1], *map(_zeros, filter(_is_write, changes[-1:]))]
            case _:
                return changes[:keep]

    def lost(self, keep: Keep) -> list[Change]:
        """Of what is not durable that which is lost or no longer what was written."""
        kept = {id(change) for change in self.kept(keep)}
        return [change for change in self.changes if id(change) not in kept]

    def choices(self) -> list[Keep]:
        """The ways to lose something that leave different files behind, the greatest loss first
        and then the order of the changes."""
        seen = [self.image()]
        found: list[Keep] = []
        for keep in (*KEEPS, *range(1, len(self.changes))):
            image = self.survivors(keep)
            if image not in seen:
                seen.append(image)
                found.append(keep)
        return found

    def images(self) -> Iterator[Image]:
        """Every state, without repetition, that a crash could leave now. Of the last change, if it
        is a write, each byte counts; other files are as after one of their changes."""
        last = self.changes[-1] if self.changes else None
        torn = last.inode if isinstance(last, ContentChange) else None
        seen: set[tuple[tuple[Path, bytes], ...]] = set()
        names = dict(self.durable)
        for change in (None, *(c for c in self.changes if isinstance(c, NameChange))):
            if change is not None:
                _give(names, change.names)
            files = {p: inode for p, inode in names.items() if not inode.is_directory}
            choices = (set(self._contents(inode, inode is torn)) for inode in files.values())
            for contents in product(*choices):
                image = dict(zip(files, contents, strict=True))
                key = tuple(sorted(image.items()))
                if key not in seen:
                    seen.add(key)
                    yield image

    def describe(self, change: Change) -> str:
        """A change in words, with the file that it is of."""
        if isinstance(change, NameChange):
            return str(change)
        known = {**self.durable, **self.names}
        name = next((path.name for path, i in known.items() if i is change.inode), "a file")
        return f"{change} of {name}"

    def _contents(self, inode: Inode, every_byte: bool) -> Iterator[bytes]:
        content = inode.durable
        yield content
        pending = [c for c in self.changes if isinstance(c, ContentChange) and c.inode is inode]
        for place, change in enumerate(pending):
            data = change.change
            if every_byte and place == len(pending) - 1 and isinstance(data, bytes):
                for kept in range(1, len(data)):
                    yield content + data[:kept]
                    yield content + data[:kept] + bytes(len(data) - kept)
                yield content + bytes(len(data))
            content = change.on(content)
            yield content

    def kept_names(self, keep: Keep) -> dict[Path, Inode]:
        """The names after a power cut, those of directories too."""
        names = dict(self.durable)
        for change in self.kept(keep):
            if isinstance(change, NameChange):
                _give(names, change.names)
        return names

    def _name(self, names: Mapping[Path, Inode | None]) -> None:
        _give(self.names, names)
        self.changes.append(NameChange(names, self.origin))

    def _fill(self, change: ContentChange) -> None:
        change.inode.content = change.on(change.inode.content)
        self.changes.append(change)


def cut_to(content: bytes, size: int) -> bytes:
    """What a file holds when it has been cut, or made longer, to a size."""
    return content[:size] + bytes(max(0, size - len(content)))


def _give(names: dict[Path, Inode], changed: Mapping[Path, Inode | None]) -> None:
    for path, inode in changed.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _is_write(change: Change) -> bool:
    return isinstance(change, ContentChange) and isinstance(change.change, bytes)


def _half(change: Change) -> Change:
    assert isinstance(change, ContentChange) and isinstance(change.change, bytes)
    return replace(change, change=change.change[: len(change.change) // 2])


def _zeros(change: Change) -> Change:
    assert isinstance(change, ContentChange) and isinstance(change.change, bytes)
    return replace(change, change=bytes(len(change.change)))
