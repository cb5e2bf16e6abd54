"""What a run leaves behind in files that nobody wants any more. It is never put out, so that no
output shows it, and a system that runs for long fills its disks with it.

What a crash has left is often removed only when the next batch is done. So while faults may have
fired, only what more than one batch has had the occasion to remove counts; in an undisturbed run
everything does, and where no more than a call to the disk has failed: whoever is told of that
removes what it has begun. Where no process was killed, each driver has come to its own end, also
one that was replaced, and has left nothing that it had begun. And who commits a batch to Arrow
files drops the rows of all who did not, those of drivers that were killed among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from bettong.engine.sinks.arrow import unnamed_rows
from bettong.engine.state.housekeeping import FOLDER as FILES
from bettong.engine.state.manifest import read_version, stored
from bettong.engine.state.planned import all_noted
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import PowerCut, Storage
from bettong.harness.runs.left_logs import leak
from bettong.lineage.errors import BettongError
from bettong.lineage.faults import PARTITION, PAUSE
from bettong.lineage.results import Anomaly

_UNFINISHED = (".tmp-*", "*.new")
"""Names under which the engine writes what gets its own name when it is whole."""
_WRITTEN = re.compile(r"/\d+-(?P<batch>\d+)-\d+-(?!merge-)[^/]*\Z")
_LATE = frozenset({PARTITION, PAUSE})
"""Kinds of faults by which somebody goes on who was taken for dead."""
STATE = "state"
_SHOWN = 5


def left_over(
    layout: Layout,
    versions: int | None = None,
    faults: Sequence[Fault] = (),
    evidence: Iterable[str] = (),
) -> tuple[Anomaly, ...]:
    """A Leak for each kind of thing that is left over where all messages are done with.

    Args:
        layout: of the run; nobody is at work in it.
        versions: of the state that are to be kept at most; None where that is not judged. Where a
            driver was held back it is not: what it writes when it goes on, nobody removes yet.
        faults: that were to fire.
        evidence: of those that have: what the disk did not remove when it was asked to is left.
    """
    found: list[Anomaly] = []
    if versions is not None and not any(fault.bound == PAUSE for fault in faults):
        found += _state(layout, versions)
    of_drivers = [layout.files, layout.checkpoint / STATE]
    if all(isinstance(fault, Storage) and not fault.lasting for fault in faults):
        unfinished = _begun([*of_drivers, layout.gateway, layout.receiver])
        unfinished |= set(layout.files.glob("*/_staged/*"))
        found += _unfinished(layout, unfinished, set(map(Storage.left_by, evidence)))
    elif not any(fault.kills or isinstance(fault, Storage) for fault in faults):
        found += _unfinished(layout, _begun(of_drivers))
    if not any(fault.bound in _LATE or isinstance(fault, PowerCut) for fault in faults):
        found += _unnamed_rows(layout)
    return tuple(found)


def _state(layout: Layout, versions: int) -> Iterator[Anomaly]:
    """Versions of the state, with their files and notes, that two batches since have made useless.
    What is merged beside the batches may come too late to be named, and is left out."""
    store = LocalStore(layout.checkpoint / STATE)
    try:
        kept = stored(store)
        named = {file.name for version in kept for file in read_version(store, *version).files}
        noted = [note.batch for note in all_noted(store)]
    except BettongError:
        return  # who reads the state says so
    newest = max((batch for batch, _ in kept), default=0)
    oldest = newest - versions
    old = sorted({batch for batch in [*noted, *(batch for batch, _ in kept)] if batch < oldest})
    if old:
        yield leak(
            f"notes of batch {oldest} and those after it",
            f"notes of {', '.join(f'batch {batch}' for batch in old)} too",
            f"the driver keeps more than {versions} versions of the state",
        )
    files = [
        f"{FILES}/{state}/{name}"
        for state in sorted(path.name for path in (store.root / FILES).glob("*"))
        for name in store.names(f"{FILES}/{state}")
    ]
    useless = [f for f in files if f not in named and _batch(f) < newest - 1]
    if useless:
        yield leak(
            "files that a version of the state names",
            f"{', '.join(useless[:_SHOWN])} and {len(useless)} such files in all",
            "the driver keeps files of the state that no version names",
        )


def _unnamed_rows(layout: Layout) -> Iterator[Anomaly]:
    """Rows in Arrow files of which no batch is made. Who stages some late, when their batch is
    committed, may leave them, and so may who loses power before their removal is durable."""
    for folder in sorted(layout.files.glob("*")):
        try:
            unnamed = unnamed_rows(folder)
        except BettongError:
            continue  # who reads the rows says so
        if unnamed:
            yield leak(
                "rows that a batch names",
                f"{', '.join(unnamed[:_SHOWN])} and {len(unnamed)} such files in all",
                f"the sink {folder.name} keeps rows that no batch names",
            )


def _batch(file: str) -> float:
    """The batch after which a file of the state is not needed, if no version names it."""
    found = _WRITTEN.search(file)
    return int(found["batch"]) if found else math.inf


def _begun(folders: Iterable[Path]) -> set[Path]:
    """Files that were to have another name."""
    return {path for top in folders for pattern in _UNFINISHED for path in top.rglob(pattern)}


def _unfinished(
    layout: Layout, found: Iterable[Path], excused: Collection[str | None] = ()
) -> Iterator[Anomaly]:
    """Files that were to have another name, and outputs that wait to be committed."""
    names = sorted(
        path.relative_to(layout.folder).as_posix() for path in found if path.name not in excused
    )
    if names:
        yield leak(
            "only files that are whole and in use",
            f"{', '.join(names[:_SHOWN])} and {len(names)} such files in all",
            "unfinished files are left",
        )
