"""Savepoints: what a checkpoint holds of one batch, as one file to be kept or carried elsewhere.

A savepoint of batch N has the versions N - 1 and N of the state with their files, what batch N was
planned to take, the newest epoch, the order of files that a folder's source keeps, and Spark's own
notes of these batches. So a checkpoint that is made from it is as one whose driver was killed after
batch N: the next start, on the same runner, does batch N again and goes on after it, in an epoch
that no sink has seen.

Sources must still have the messages that follow, and sinks must have seen no later batch, or be new
ones. The file is a tar archive that ends with ``savepoint.json``, which lists every other file with
its length and CRC-32.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tarfile
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from bettong.engine.state import manifest as manifests
from bettong.engine.state.manifest import Manifest, ManifestError
from bettong.engine.state.query import read_kept
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.disk import OS_DISK, AppendFile, Disk
from bettong.lineage.errors import BettongError, UsageError

FORMAT = 1
_HELD = 500
_ENTRY = re.compile(r"\d{9}\.json")
"""Names of the entries in which a folder's source keeps the order of files."""
_CONTENTS = "savepoint.json"
_PLANNED = "state/planned/{:012d}.json"


class SavepointError(BettongError):
    """A savepoint that is damaged, or a checkpoint that moved on while it was read."""


def export(
    checkpoint: Path, target: Path, batch: int | None = None, disk: Disk = OS_DISK
) -> Manifest:
    """Write a savepoint of a batch, the last one by default; the application may run meanwhile.

    Args:
        checkpoint: the folder of a run, with its state log in it.
        target: the file, which must not be there.
        disk: that the file is written to.

    Raises:
        UsageError: there is such a file already.
        ManifestError: there is no such batch, or the one before it is not kept.
        SavepointError: the batch was given up while it was read.
    """
    unfinished = target.with_name(f".{uuid.uuid4().hex}")
    try:
        if os.path.lexists(target):
            raise UsageError(f"{target} is there already: name another file")
        with contextlib.ExitStack() as held:
            last, files = read_kept(
                LocalStore(checkpoint / "state"), batch, lambda it: _held(checkpoint, it, held)
            )
            _pack(checkpoint, last, files, disk, unfinished)
        disk.rename(unfinished, target)
        disk.sync_directory(target.parent)
    except OSError as e:
        raise UsageError(f"cannot write {target}: {e.strerror or e}") from e
    finally:
        with contextlib.suppress(OSError):
            disk.remove(unfinished)
    return last


def _held(
    checkpoint: Path, last: Manifest, held: contextlib.ExitStack
) -> dict[str, BinaryIO | None]:
    """The files of a savepoint by their names. As many as a process may well have open are opened:
    they stay readable when the run gives the batch up. None is one that is opened in its turn."""
    held.close()  # what was opened of a version that was given up
    names = list(_names(checkpoint, last))
    return {
        name: held.enter_context(_open(checkpoint / name, last)) if n < _HELD else None
        for n, name in enumerate(names)
    }


def _pack(
    checkpoint: Path, last: Manifest, files: dict[str, BinaryIO | None], disk: Disk, target: Path
) -> None:
    """Write the archive, durably."""
    listed: dict[str, tuple[int, int]] = {}
    written = disk.append_to(target)
    try:
        with tarfile.open(fileobj=_Appended(written), mode="w|") as archive:
            for name, file in files.items():
                with file or _open(checkpoint / name, last) as opened:
                    listed[name] = _add(archive, name, opened)
            contents = {
                "format": FORMAT,
                "application": last.application,
                "batch": last.batch,
                "offsets": dict(last.offsets),
                "files": listed,
            }
            _add(archive, _CONTENTS, io.BytesIO(json.dumps(contents).encode()))
        written.sync()
    finally:
        written.close()


def _open(path: Path, last: Manifest) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as e:
        raise SavepointError(
            f"batch {last.batch} was given up while it was read ({path} is gone): try again"
        ) from e


def _add(archive: tarfile.TarFile, name: str, file: BinaryIO) -> tuple[int, int]:
    """Add a file; its length and checksum."""
    member = tarfile.TarInfo(name)
    member.size = file.seek(0, os.SEEK_END)
    file.seek(0)
    checked = _Checked(file)
    archive.addfile(member, checked)
    return member.size, checked.crc


class _Appended(io.RawIOBase):
    """A file as tarfile writes one."""

    def __init__(self, file: AppendFile) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        return len(data)


class _Checked(io.RawIOBase):
    """A file that is read once, and the checksum of what has been read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self.crc = 0
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.crc = zlib.crc32(data, self.crc)
        return data


def _names(checkpoint: Path, last: Manifest) -> Iterator[str]:
    """The files of a savepoint, relative to the checkpoint."""
    store = LocalStore(checkpoint / "state")
    kept: set[str] = set()
    versions = manifests.stored(store)
    if last.batch and last.batch - 1 not in (batch for batch, _ in versions):
        raise ManifestError(
            f"a savepoint of batch {last.batch} has the state before it too, and that after batch "
            f"{last.batch - 1} is not kept any more: take a later batch"
        )
    for batch, epoch in versions:
        if batch in (last.batch - 1, last.batch):
            kept.update(entry.name for entry in manifests.read_version(store, batch, epoch).files)
            yield f"state/{manifests.FOLDER}/{batch:012d}-{epoch:06d}.json"
    yield from sorted(f"state/{name}" for name in kept)
    yield f"state/epochs/{manifests.current_epoch(store):06d}.json"
    # Without its note that the last batch is done, Spark does it again, as every runner is to.
    spark = [f"spark/offsets/{n}" for n in (last.batch - 1, last.batch)]
    spark.append(f"spark/commits/{last.batch - 1}")
    for name in (_PLANNED.format(last.batch), "spark/metadata", *spark):
        if (checkpoint / name).exists():
            yield name
    for path in sorted(checkpoint.rglob("*.json")):
        if _ENTRY.fullmatch(path.name):  # whoever made the source has chosen the folder
            yield str(path.relative_to(checkpoint))
    for folder in ("spark/sources", "state/sources"):
        for path in sorted((checkpoint / folder).rglob("*")):
            if path.is_file():
                yield str(path.relative_to(checkpoint))


def restore(savepoint: Path, checkpoint: Path) -> dict[str, Any]:
    """Make the checkpoint of a run from a savepoint; all of it is there, or nothing.

    Args:
        checkpoint: a folder that is not there, or is empty.

    Returns:
        ``application``, ``batch`` and ``offsets`` of the savepoint.

    Raises:
        UsageError: the folder is not empty, or the file is no savepoint.
        SavepointError: the savepoint is damaged; nothing has been written.
    """
    unfinished = checkpoint.absolute().with_name(f".{uuid.uuid4().hex}")
    try:
        if os.path.lexists(checkpoint) and (not checkpoint.is_dir() or any(checkpoint.iterdir())):
            raise UsageError(f"{checkpoint} is not empty: give a new folder")
        contents = _unpack(savepoint, unfinished)
        OS_DISK.rename(unfinished, checkpoint)
        OS_DISK.sync_directory(unfinished.parent)
    except OSError as e:
        raise UsageError(f"cannot read {savepoint} or write {checkpoint}: {e.strerror or e}") from e
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return {key: contents[key] for key in ("application", "batch", "offsets")}


def _unpack(savepoint: Path, folder: Path) -> dict[str, Any]:
    """Write the files of a savepoint, durably; what it says of itself."""
    found: dict[str, list[int]] = {}
    contents: dict[str, Any] = {}
    try:
        with tarfile.open(savepoint, "r:") as archive:  # as it is written: no decompressor is tried
            for member in archive:
                file = archive.extractfile(member)
                if file is None:
                    raise ValueError(f"{member.name} is no file")
                if member.name == _CONTENTS:
                    contents = json.load(file)
                else:
                    found[member.name] = _write(file, folder, member)
        form, wanted = contents["format"], contents["files"]
    except (tarfile.TarError, KeyError, TypeError, ValueError) as e:
        raise UsageError(f"{savepoint} is no savepoint, or is damaged: {e!r}") from e
    if form != FORMAT:
        raise UsageError(f"{savepoint} has format {form}, this version of Bettong reads {FORMAT}")
    if wanted != found:
        raise SavepointError(f"{savepoint} is damaged: its files are not those that it lists")
    return contents


def _write(file: IO[bytes], folder: Path, member: tarfile.TarInfo) -> list[int]:
    """Write one of its files; its length and checksum."""
    path = folder / member.name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{member.name} is outside of a checkpoint")
    OS_DISK.make_directory(path.parent)
    checked, copy = _Checked(file), OS_DISK.append_to(path)
    try:
        while data := checked.read(1 << 20):
            copy.write(data)
        copy.sync()
    finally:
        copy.close()
    OS_DISK.sync_directory(path.parent)
    return [member.size, checked.crc]
