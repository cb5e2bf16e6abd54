"""The account that a node keeps, under test, of what it does to its disk: what of it is not
durable is still in the machine's memory when its processes are killed, and lost in a power cut.

One file for each node, to which all its processes and incarnations append. A record is a line of
JSON ``[operation, operands…, length of the data]``, and the data with a line end behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bettong.engine.storage.durability import ContentChange, Inode, Keep, Volume


class DiskLog:
    """The account of a node as one of its processes writes it. Records follow what they tell of,
    so that a process which is killed between the two is believed to have done less."""

    def __init__(self, folder: Path, node: str) -> None:
        self._fd = os.open(account(folder, node), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._known: set[Path] = set()

    def write(self, operation: str, *operands: Path | str | int, data: bytes = b"") -> None:
        """Note what was done."""
        self._known.update(o for o in operands if isinstance(o, Path))
        line = json.dumps([operation, *map(_json, operands), len(data)]).encode()
        os.write(self._fd, b"%s\n%s\n" % (line, data))

    def found(self, *paths: Path) -> None:
        """Note whether files are there before they are touched: another node may have made them,
        or removed them."""
        for path in paths:
            if not path.exists():
                self.write("gone", path)
            elif path not in self._known:
                self.write("exists", path, data=path.read_bytes())


def account(folder: Path, node: str) -> Path:
    """The file of a node's account."""
    return folder / f"{node}.disk"


def replayed(file: Path) -> Volume:
    """What a node's account says of its files; nothing for a node that has none."""
    volume = Volume()
    handles: dict[str, Inode] = {}
    for operation, operands, data in _records(file):
        match operation, operands:
            case "exists", [path]:
                volume.exists(Path(path), data)
            case "gone", [path]:
                volume.gone(Path(path))
            case "open", [handle, path]:
                known = volume.names.get(Path(path))
                handles[handle] = known if known is not None else volume.create(Path(path))
            case "append", [handle]:
                volume.append(handles[handle], data)
            case "truncate", [handle, size]:
                volume.truncate(handles[handle], size)
            case "sync", [handle]:
                volume.sync(handles[handle])
            case "sync failed", [handle]:
                volume.sync_failed(handles[handle])
            case "rewrite", [offset, size, path]:
                volume.rewrite(volume.names[Path(path)], offset, size)
            case "rename", [source, target]:
                volume.rename(Path(source), Path(target))
            case "link", [source, target]:
                volume.link(Path(source), Path(target))
            case "remove", [path]:
                volume.remove(Path(path))
            case "mkdir", [path]:
                volume.create(Path(path), is_directory=True)
            case "sync directory", [path]:
                volume.sync_directory(Path(path))
    return volume


def lose(file: Path, keep: Keep = "nothing") -> list[str]:
    """Take away from a node's files what a power cut takes, once all its processes are dead.

    Returns:
        What was lost, in words, oldest first.
    """
    volume = replayed(file)
    lost = [volume.describe(change) for change in volume.lost(keep)]
    now, left = volume.image(), volume.survivors(keep)
    for path in now.keys() - left.keys():
        path.unlink(missing_ok=True)
    for path, content in left.items():
        if now.get(path) != content:
            path.unlink(missing_ok=True)  # another name of the file may have another fate
            path.write_bytes(content)
    kept = volume.kept_names(keep)
    for path, inode in volume.names.items():
        if inode.is_directory and path not in kept:
            shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.truncate(file, 0)  # what is left is durable
    return lost


def makes(file: Path) -> bool | None:
    """Whether of what a node has done that is not durable it has made anything, a name or bytes: of
    what is removed, nothing is lost. None where all is durable."""
    changes = replayed(file).changes
    if not changes:
        return None
    return any(isinstance(c, ContentChange) or any(c.names.values()) for c in changes)


def _records(file: Path) -> Iterator[tuple[str, list[Any], bytes]]:
    """The records; one that a killed process has left unfinished ends them."""
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        return
    with opened:
        while (line := opened.readline()).endswith(b"\n"):
            operation, *operands, length = json.loads(line)
            data = opened.read(length + 1)
            if len(data) <= length:
                return
            yield operation, operands, data[:length]


def _json(operand: Path | str | int) -> str | int:
    return str(operand) if isinstance(operand, Path) else operand
