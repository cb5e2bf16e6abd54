"""State files: immutable, sorted by hash and then by canonical key, one row for each entity.

A file is an Arrow IPC file with one record batch of the columns ``hash`` (uint64), ``key``
(binary, canonical) and ``entity`` (what the codec writes; null says that the entity is gone).
Its length and CRC-32 stand in the manifest that names it, which is how damage is found.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine.state.store import Store, StoreError
from bettong.lineage.errors import BettongError

_VERSION = b"bettong.codec"


class StateFileError(BettongError):
    """A state file that is not what its manifest says."""


@dataclass(frozen=True)
class FileEntry:
    """What a manifest says of a state file.

    Attributes:
        name: relative to the state log.
        state: name of the state that its entities are of.
        low: no hash in the file is lower.
        high: no hash in the file is higher.
        rows: number of entities.
        length: in bytes.
        crc: CRC-32 of the file.
        tier: how often its rows have been merged.
    """

    name: str
    state: str
    low: int
    high: int
    rows: int
    length: int
    crc: int
    tier: int = 0

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))  # asdict copies each value, for every file of every manifest

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileEntry:
        """Raises TypeError when the value is not one."""
        entry = cls(**value)
        numbers = (entry.low, entry.high, entry.rows, entry.length, entry.crc, entry.tier)
        if not (isinstance(entry.name, str) and isinstance(entry.state, str)):
            raise TypeError("name and state are text")
        if not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise TypeError("low, high, rows, length, crc and tier are numbers")
        return entry


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a state file, sorted: hashes, canonical keys, entities and their codec's version."""

    hashes: np.ndarray[Any, np.dtype[np.uint64]]
    keys: pa.Array
    entities: pa.Array
    version: int

    def find(
        self,
        hashes: np.ndarray[Any, np.dtype[np.uint64]],
        keys: pa.Array,
        wanted: np.ndarray[Any, np.dtype[np.int64]],
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For each wanted place among (hash, canonical key) the row that holds it, or -1."""
        if not len(self.hashes):
            return np.full(len(wanted), -1, np.int64)
        sought = hashes[wanted]
        rows: np.ndarray[Any, np.dtype[np.int64]]
        rows = np.searchsorted(self.hashes, sought).astype(np.int64)
        found = self.hashes[np.minimum(rows, len(self.hashes) - 1)] == sought
        rows[~found] = -1
        hits = np.flatnonzero(found)
        if len(hits):
            places = wanted[hits]
            same = pc.equal(self.keys.take(pa.array(rows[hits])), keys.take(pa.array(places)))
            for hit in hits[~np.asarray(same)]:
                rows[hit] = self._after_collision(rows[hit], keys[int(wanted[hit])].as_py())
        return rows

    def _after_collision(self, row: int, key: bytes) -> int:
        """The row of a key whose hash another key has too; its rows follow each other."""
        hashed = self.hashes[row]
        while row < len(self.hashes) and self.hashes[row] == hashed:
            if self.keys[int(row)].as_py() == key:
                return int(row)
            row += 1
        return -1


def write_rows(store: Store, name: str, state: str, rows: Rows, tier: int = 0) -> FileEntry:
    """Write rows that are sorted already; durable when this returns."""
    schema = pa.schema(
        [("hash", pa.uint64()), ("key", pa.binary()), ("entity", rows.entities.type)],
        metadata={_VERSION: str(rows.version).encode()},
    )
    batch = pa.record_batch([pa.array(rows.hashes), rows.keys, rows.entities], schema=schema)
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_batch(batch)
    data = memoryview(out.getvalue())
    store.write(name, data)
    return FileEntry(
        name,
        state,
        int(rows.hashes[0]),
        int(rows.hashes[-1]),
        len(rows.hashes),
        len(data),
        zlib.crc32(data),
        tier,
    )


def read_rows(store: Store, entry: FileEntry) -> Rows:
    """Read and check a file, without copying its columns.

    Raises:
        StateFileError: the file is not, byte for byte, the one that the manifest names.
    """
    data = store.read(entry.name)
    if len(data) != entry.length or zlib.crc32(data) != entry.crc:
        raise StateFileError(
            f"state file {entry.name} is damaged: its length or checksum is not the manifest's; "
            "restore it from a copy, or start from an older checkpoint"
        )
    return _rows(entry, data)


def open_rows(store: Store, entry: FileEntry) -> Rows:
    """The same file, of which no byte is looked at before it is wanted: nothing is checked but its
    frame. Raises StateFileError when there is none, or it is not a state file."""
    try:
        return _rows(entry, store.read(entry.name))
    except StoreError as e:
        raise StateFileError(str(e)) from e


def _rows(entry: FileEntry, data: memoryview) -> Rows:
    try:
        batch = pa.ipc.open_file(pa.py_buffer(data)).get_batch(0)
        version = int((batch.schema.metadata or {})[_VERSION])
        hashes, keys, entities = batch.columns
        return Rows(hashes.to_numpy(), keys, entities, version)
    except (pa.ArrowException, OSError, LookupError, ValueError) as e:
        raise StateFileError(f"state file {entry.name} is not one: {e}") from e


def sort_order(hashes: Sequence[int], keys: Sequence[bytes]) -> list[int]:
    """Places of the rows in the order in which a file holds them."""
    order = np.argsort(np.array(hashes, np.uint64), kind="stable")
    placed = np.array(hashes, np.uint64)[order]
    if len(placed) > 1 and bool((placed[1:] == placed[:-1]).any()):  # hashes that collide
        return sorted(range(len(hashes)), key=lambda i: (hashes[i], keys[i]))
    result: list[int] = order.tolist()
    return result
