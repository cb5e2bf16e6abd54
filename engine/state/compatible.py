"""Whether an application can go on with a state log that other code of it has written.

It is asked before a start touches anything. State partitions, steps, sources and sinks may be
others than before; what has been counted must still be there to be counted on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from bettong.engine.functions import State
from bettong.engine.graph import Application
from bettong.engine.state.entities import as_today
from bettong.engine.state.files import FileEntry, StateFileError, open_rows, read_rows
from bettong.engine.state.manifest import Manifest, read_version, stored
from bettong.engine.state.planned import noted
from bettong.engine.state.store import Store
from bettong.lineage.errors import BettongError, UsageError


def check_compatible(app: Application, store: Store, topics: Collection[str] = ()) -> None:
    """Raises UsageError that names everything that keeps the application from going on.

    Args:
        app: the application.
        store: the state log.
        topics: the sources each of whose partitions is a stream.
    """
    versions = stored(store)
    if not versions:
        _expect_no(list(_planned(app, store, 0, topics)), app, "")
        return
    manifest = read_version(store, *versions[-1])
    if manifest.application != app.name:
        raise UsageError(
            f"the state log is of application {manifest.application}, not of {app.name}: give each "
            "application a checkpoint of its own"
        )
    wrong = [
        *_sources(app, manifest, topics),
        *_planned(app, store, manifest.batch + 1, topics),
        *_states(app, manifest, store),
    ]
    _expect_no(wrong, app, f" with its state after batch {manifest.batch}")


def _expect_no(wrong: Sequence[str], app: Application, where: str) -> None:
    if wrong:
        raise UsageError(
            f"application {app.name} cannot go on{where}, nothing has been touched: "
            + "; ".join(wrong)
        )


def _is_read(stream: str, app: Application, topics: Collection[str]) -> bool:
    names = {source.name for source in app.sources}
    return stream in names or stream.rpartition("-")[0] in topics


def _planned(app: Application, store: Store, batch: int, topics: Collection[str]) -> Iterator[str]:
    """What keeps the batches from being done that were noted since the state."""
    while (planned := noted(store, batch)) is not None:
        for part in planned.ranges:
            if not _is_read(part.stream, app, topics):
                yield (
                    f"batch {batch} was planned with messages of source {part.stream}, and there "
                    "is no such source any more: keep it, it may be silent"
                )
        batch += 1


def _sources(app: Application, manifest: Manifest, topics: Collection[str]) -> Iterator[str]:
    for stream, end in manifest.offsets.items():
        if end and not _is_read(stream, app, topics):
            yield (
                f"{end} messages of source {stream} are in the state, and there is no such source "
                "any more: keep it, it may be silent"
            )


def _states(app: Application, manifest: Manifest, store: Store) -> Iterator[str]:
    today = {state.name: state for state in app.states}
    for name in sorted({entry.state for entry in manifest.files}):
        files = [entry for entry in manifest.files if entry.state == name]
        if name not in today:
            yield (
                f"there are entities of state {name}, and there is no such state any more: give "
                "the state that has taken its place its name, with state_entity(cls, name=…)"
            )
            continue
        yield from _unlike(today[name], files, store)


def _unlike(state: State, files: list[FileEntry], store: Store) -> Iterator[str]:
    """What keeps today's code from reading the state, for each form in which it is written: an
    entity of it is read to find out."""
    known: set[tuple[int, pa.DataType]] = set()
    for entry in files:
        try:
            opened = open_rows(store, entry)
            form = opened.version, opened.entities.type
            if form in known:
                continue
            rows = read_rows(store, entry)  # a damaged entity would look like other code's
        except StateFileError as e:
            yield str(e)
            continue
        valid = rows.entities.is_valid().index(True).as_py()
        if valid < 0:
            continue
        known.add(form)
        try:
            as_today(state, rows.entities.slice(valid, 1), rows.version)
        except BettongError as e:
            yield str(e)
        except Exception as e:  # whatever a user's function raises
            yield f"state {state.name} cannot be read: {type(e).__name__}: {e}"
