"""Arrow files as a sink, for outputs that are read by columns.

Each winning attempt's rows are one file of the columns ``id``, ``key`` (canonical bytes, see
:mod:`bettong.engine.keys`; null without a key) and ``data``. A batch's note names its files and is
published at once: whoever reads by notes sees whole batches, each once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from bettong.engine.errors import FencedError
from bettong.engine.keys import canonical
from bettong.engine.sinks.base import Noted, Row, Rows
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import step
from bettong.engine.storage.disk import removed_if_it_fails
from bettong.engine.storage.sealed import sealed, unsealed
from bettong.lineage.errors import BettongError, UsageError

_NOTES = "batches"
SCHEMA = pa.schema([("id", pa.string()), ("key", pa.binary()), ("data", pa.binary())])


@dataclass(frozen=True)
class ArrowSink:
    """Rows as Arrow files of a directory that driver and workers share.

    A zombie that passed the fence just before it was closed can do no harm: a batch's note is
    made only if there is none, and names rows that do not depend on who makes it.

    Attributes:
        directory: of this application's output alone.
    """

    promises: ClassVar[str] = "effectively-once"
    directory: Path

    def newest_batch(self) -> int:
        """The newest batch that is visible in the directory; -1 without any."""
        return max((int(n.split(".")[0]) for n in self._store.names(_NOTES)), default=-1)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Begin an epoch. Raises FencedError when a newer one has begun, UsageError when the
        directory is another application's."""
        with step(noted.step, causes=noted.causes):
            owners = {name.split("-", 1)[1] for name in self._store.names("epochs")}
            if owners - {application}:
                raise UsageError(
                    f"{self.directory} holds the output of {', '.join(sorted(owners))}: give "
                    "each application a directory of its own"
                )
            self._check_epoch(epoch)
            self._store.create(f"epochs/{epoch:06d}-{application}", b"")

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Stage rows in a file of this attempt's own; durable on return."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._check_epoch(epoch)
            if self._is_committed(batch):
                return
            out = pa.BufferOutputStream()
            with pa.ipc.new_file(out, SCHEMA) as writer:
                writer.write_batch(_to_batch(rows))
            data = memoryview(out.getvalue())
            own = f"{len(data)}-{uuid.uuid4().hex[:12]}.arrow"
            self._stage(f"rows/{_attempt(epoch, batch, partition, attempt)}-{own}", data)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Publish the note of the batch, and drop what it does not name of the batch's rows.

        Raises BettongError for a winner that has not been prepared.
        """
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._check_epoch(epoch)
            staged = [n for n in self._store.names("rows") if n.split("-")[1] == f"{batch:012d}"]
            if self._is_committed(batch):
                self._store.settle(_NOTES)
            else:
                whole = list(filter(self._is_whole, staged))
                files = [_newest(whole, epoch, batch, *place) for place in sorted(winners.items())]
                self._store.create(_note(batch), sealed(files))
            for name in set(staged).difference(_named(self._store, _note(batch))):
                self._store.remove(f"rows/{name}")

    def _stage(self, name: str, data: memoryview) -> None:
        """Write a file of rows; where that fails there is none."""
        store = self._store
        with removed_if_it_fails(store.root / name, store.disk):
            store.write(name, data)

    def _is_whole(self, name: str) -> bool:
        """Whether a file of rows has the size that its name says. One of an executor that died over
        it has not: Spark counts the attempts at a task from 0 again where it repeats a stage. What
        an earlier release has staged says none, and is of an epoch that is over."""
        return name.split("-")[4] == str(self._store.disk.size(self._store.root / "rows" / name))

    def _is_committed(self, batch: int) -> bool:
        return (self.directory / _note(batch)).exists()

    def _check_epoch(self, epoch: int) -> None:
        newest = max((int(n[:6]) for n in self._store.names("epochs")), default=0)
        if newest > epoch:
            raise FencedError(f"epoch {epoch} is refused at {self.directory}: {newest} has begun")

    @property
    def _store(self) -> LocalStore:
        return LocalStore(self.directory)


def _note(batch: int) -> str:
    return f"{_NOTES}/{batch:012d}.json"


def _named(store: LocalStore, note: str) -> list[str]:
    """The files of rows that a batch's note names."""
    content, where = bytes(store.read(note)), f"{store.root}/{note}"
    return list(unsealed(content, where, "restore it from a copy"))


def _newest(staged: Sequence[str], epoch: int, batch: int, partition: int, attempt: int) -> str:
    """The file of an attempt, which may have been sent again; raises BettongError without one."""
    prefix = _attempt(epoch, batch, partition, attempt) + "-"
    found = [name for name in staged if name.startswith(prefix)]
    if not found:
        raise BettongError(
            f"batch {batch} cannot be committed: partition {partition}, attempt {attempt} has not "
            "been prepared"
        )
    return max(found)


def _attempt(epoch: int, batch: int, partition: int, attempt: int) -> str:
    return f"{epoch:06d}-{batch:012d}-{partition:04d}-{attempt}"


def _to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    if isinstance(rows, Rows):
        ids, data, keys = rows.ids, rows.data, rows.canonical_keys()
    else:
        ids, data = [r.id for r in rows], [r.data for r in rows]
        keys = pa.array([None if r.key is None else canonical(r.key) for r in rows], pa.binary())
    columns = [pa.array(ids, pa.string()), keys, pa.array(data, pa.binary())]
    return pa.record_batch(columns, schema=SCHEMA)


def read_batches(directory: Path) -> Iterator[pa.Table]:
    """The visible rows of a sink's directory, batch by batch."""
    store = LocalStore(directory)
    for note in store.names(_NOTES):
        files = _named(store, f"{_NOTES}/{note}")
        tables = [pa.ipc.open_file(pa.py_buffer(store.read(f"rows/{f}"))).read_all() for f in files]
        yield pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def unnamed_rows(directory: Path) -> list[str]:
    """The files of rows that no batch's note names: nobody reads them, unless their batch is yet to
    be committed."""
    store = LocalStore(directory)
    named = {file for note in store.names(_NOTES) for file in _named(store, f"{_NOTES}/{note}")}
    return [f"rows/{name}" for name in store.names("rows") if name not in named]
