"""The durable state of a run: its folder, copied at a crash and brought back after it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import FileIO
from pathlib import Path

from bettong.harness.queries.run.parquet_footer import in_one_order

# Random ids with and without dashes, milliseconds since 1970, Python's names of temporary files,
# and how long something took, as Delta's log says of a merge ("executionTimeMs":"812").
_UNPINNED = re.compile(
    rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32}\b|\b1[0-9]{12}\b"
    rb"|\btmp[a-z0-9_]{8}\b|(?<=TimeMs\":\")[0-9]+(?=\")"
)

# What Spark had begun to write to its checkpoint when it died, and will never look at again.
_UNFINISHED = re.compile(r"/checkpoint/(?:[\w-]+/)*\.[^/]*\.tmp$")

_CHECKED = re.compile(r"/\.[^/]*\.crc$")
"""What Hadoop keeps beside each file to check it by."""


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


class Moments:
    """Gives each moment of one run a digest of names and contents: moments that have the same
    digest leave the same behind, in one run and in several.

    In several runs times, random ids and the run's own folder, or its name, count as equal, and so
    do Parquet files that name encodings in another order.
    Within one they do not: a mark that names a batch by a hash, or a pointer to what has a random
    name, is another one when it changes. The so-manieth state that is the same but for these has
    that number.
    """

    def __init__(self) -> None:
        self._met: dict[str, list[str]] = {}
        self._lock = threading.Lock()  # processes that work side by side report at once

    def digest(self, folder: Path) -> str:
        """Of the folder as it is now."""
        digest, exact = _digests(folder)
        with self._lock:
            met = self._met.setdefault(digest, [])
            if exact not in met:
                met.append(exact)
            number = met.index(exact) + 1
        return digest if number == 1 else f"{digest}#{number}"


def digest_state(folder: Path) -> str:
    """The digest of a folder, in which times, random ids, and where it is, count as equal."""
    return _digests(folder)[0]


def _digests(folder: Path) -> tuple[str, str]:
    """That digest, and one of all that it leaves out, too."""
    # Asked at every step, of some hundred files, most of which are as they were at the step before:
    # they are all read, and nothing else is done again.
    entries, exact, top = [], [], str(folder)
    own = os.fsencode(folder), os.fsencode(folder.name)
    for path, content in _contents(top):
        name = _named(path[len(top) :])
        if name is None:
            continue
        as_it_is = _sha(content)
        same = _KNOWN.get((as_it_is, own))
        if same is None:
            same = _remember(as_it_is, own, _as_in_any_run(content, own))
        entries.append((name[0], same))
        exact.append((name[1], as_it_is))
    return _sha(repr(sorted(entries)).encode()).hex(), _sha(repr(sorted(exact)).encode()).hex()


def _contents(folder: str) -> Iterator[tuple[str, bytes]]:
    """All that there is in a folder, with what each file has; of a link, where it leads."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                entries = list(found)
        except OSError:
            continue
        for entry in entries:
            path, content = entry.path, b""
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                if entry.is_symlink():
                    content = os.fsencode(os.readlink(path))  # noqa: PTH115 - as text it is faster
                elif entry.is_dir():
                    folders.append(path)
                else:
                    with FileIO(path) as file:
                        content = file.readall()
            yield path, content


@lru_cache(1 << 14)
def _named(path: str) -> tuple[bytes, bytes] | None:
    """How a file is called in any run, and in its own; None for one that nobody ever looks at.

    ``path``: within the run's folder, from its separator on.
    """
    if _CHECKED.search(path) or _UNFINISHED.search(path):
        return None
    name = os.fsencode(path[1:])
    return _UNPINNED.sub(b"?", name), name


_Own = tuple[bytes, bytes]
_KNOWN: dict[tuple[bytes, _Own], bytes] = {}
"""By the digest of what a file has, and its run's own names, the digest in which runs agree."""
_MOST_KNOWN = 1 << 15


def _remember(as_it_is: bytes, own: _Own, same: bytes) -> bytes:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[as_it_is, own] = same
    return same


def _as_in_any_run(content: bytes, own: _Own) -> bytes:
    """``own``: what counts as equal in several runs, the longest first: runs that go on side by
    side have their folders in different places, and a sink's own log may say where."""
    same = in_one_order(content)
    for name in own:
        same = same.replace(name, b"?")
    return _sha(_UNPINNED.sub(b"?", same))


def _sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


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
