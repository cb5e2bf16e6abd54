"""The durable state of a run: its folder, copied at a crash and brought back after it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

# Random ids with and without dashes, milliseconds since 1970, Python's names of temporary files.
_UNPINNED = re.compile(
    rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32}\b|\b1[0-9]{12}\b"
    rb"|\btmp[a-z0-9_]{8}\b"
)

# What Spark had begun to write to its checkpoint when it died, and will never look at again.
_UNFINISHED = re.compile(r"/checkpoint/(?:[\w-]+/)*\.[^/]*\.tmp$")

_REMEMBERED = 1 << 14
"""Up to so many bytes, what a file has is remembered with its digest."""


def copy_state(source: Path, target: Path) -> None:
    """Copy a folder as it is now; what vanishes meanwhile is left out, as in a crash."""
    target.mkdir(parents=True)
    for path in map(Path, _walk(str(source))):
        to = target / path.relative_to(source)
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                to.mkdir(parents=True, exist_ok=True)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, to, follow_symlinks=False)


def replace_state(folder: Path, kept: Path) -> None:
    """Throw a folder away and put the kept copy, which is used up, in its place. It is moved
    aside first: who still tidies up in it, by its old names, finds nothing of it."""
    aside = folder.with_name(f"{kept.name}-dead")
    folder.rename(aside)
    kept.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)  # its last tasks may be removing their own files


def digest_state(folder: Path) -> str:
    """A digest of names and contents, in which times, random ids and the run's own name (that of
    the folder) count as equal: moments that have the same digest leave the same behind, in one run
    and in several."""
    # Asked at every step, of some hundred files: plain text is three times as fast as paths are,
    # and what a file has is what it had at the step before.
    entries, run, top = [], folder.name.encode(), f"{folder}{os.sep}"
    for path in _walk(str(folder)):
        if path.endswith(".crc") or _UNFINISHED.search(path):
            continue
        content = b""
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            content = Path(path).read_bytes()
        name = _UNPINNED.sub(b"?", os.fsencode(path.removeprefix(top)))
        digest = _digest if len(content) <= _REMEMBERED else _digest.__wrapped__
        entries.append((name, digest(content, run)))
    return hashlib.sha256(repr(sorted(entries)).encode()).hexdigest()


@lru_cache(1 << 12)
def _digest(content: bytes, run: bytes) -> bytes:
    return hashlib.sha256(_UNPINNED.sub(b"?", content.replace(run, b"?"))).digest()


def batches_as_cut(checkpoint: Path, run: str) -> tuple[str, ...]:
    """How Spark has cut the input of a query into batches: of each the watermark that it begins
    with and the offsets up to which it reads, as planned last. ``run``: the run's name, in which
    runs that read the same differ. A log that cannot be read is like no other."""
    logs = (path for path in (checkpoint / "offsets").glob("[0-9]*") if path.name.isdigit())
    found = []
    for log in sorted(logs, key=lambda path: int(path.name)):
        try:
            _, about, *offsets = log.read_text(encoding="utf-8").splitlines()
            watermark = json.loads(about)["batchWatermarkMs"]
        except (OSError, ValueError, KeyError, TypeError):
            return (f"{run}: batch {log.name} cannot be read",)
        found.append(f"{log.name} {watermark} {offsets}".replace(run, "?"))
    return tuple(found)


def last_without_data(cut: Sequence[str]) -> int | None:
    """The number of the last of such batches, if it reads nothing that the one before has not."""
    if len(cut) < 2:
        return None
    (_, _, before), (number, _, last) = (batch.split(" ", 2) for batch in cut[-2:])
    return int(number) if last == before else None


def _walk(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in (*folders, *sorted(files)):
            yield f"{root}{os.sep}{name}"
