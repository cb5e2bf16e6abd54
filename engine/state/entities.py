"""The entities that one task of a batch touches: read from the files of the version before it,
changed by the user's functions, written as one new file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.functions import State
from bettong.engine.state.files import FileEntry, Rows, read_rows, sort_order, write_rows
from bettong.engine.state.store import Store


class FileCache:
    """Files that are open in this process, so that each is checked once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[FileEntry, Rows] = {}

    def rows(self, entry: FileEntry) -> Rows:
        found = self._open.get(entry)
        if found is None:
            found = self._open[entry] = read_rows(self._store, entry)
        return found

    def keep_only(self, files: Sequence[FileEntry]) -> None:
        """Let go of files that the current version does not name."""
        for entry in set(self._open).difference(files):
            del self._open[entry]


def load_column(
    state: State,
    cache: FileCache,
    files: Sequence[FileEntry],
    keys: Sequence[bytes],
    hashes: Sequence[int],
) -> pa.Array:
    """The entities of canonical keys as today's codec writes them; null where no file has one.

    Args:
        state: what they are entities of.
        cache: reads the files.
        files: newest first.
        keys: canonical, each once.
        hashes: of the keys.
    """
    parts = []
    count = 0
    place = np.full(len(keys), -1, np.int64)  # of each key's entity in the parts
    missing = np.arange(len(keys))
    hash_column = np.array(hashes, np.uint64)
    key_column = pa.array(keys, pa.binary())
    for entry in files:
        if not len(missing):
            break
        rows = cache.rows(entry)
        found = rows.find(hash_column, key_column, missing)
        hit = found >= 0
        if not hit.any():
            continue
        part = rows.entities.take(pa.array(found[hit]))
        parts.append(as_today(state, part, rows.version))
        place[missing[hit]] = count + np.arange(len(part))
        count += len(part)
        missing = missing[~hit]
    if not parts:
        return pa.nulls(len(keys), state.codec.type)
    return pa.concat_arrays(parts).take(pa.array(place, mask=place < 0))


def load(
    state: State,
    cache: FileCache,
    files: Sequence[FileEntry],
    keys: Sequence[bytes],
    hashes: Sequence[int],
) -> list[Any]:
    """The entities of canonical keys, made anew where no file has them; see :func:`load_column`."""
    return entities_of(state, load_column(state, cache, files, keys, hashes))


def entities_of(state: State, column: pa.Array) -> list[Any]:
    """The entities of a column of today's codec, made anew where there is none."""
    make = state.cls
    decoded = decode_present(state, column, state.codec.version)
    return [make() if e is None else e for e in decoded] if column.null_count else decoded


def with_new(state: State, column: pa.Array) -> pa.Array:
    """The column with new entities where there is none."""
    if not column.null_count:
        return column
    new = state.codec.encode([state.cls()])
    places = np.where(np.asarray(column.is_valid()), np.arange(len(column)), len(column))
    return pa.concat_arrays([column, new]).take(pa.array(places))


def as_today(state: State, column: pa.Array, version: int) -> pa.Array:
    """Entities that a version of the codec wrote, as today's writes them."""
    if version == state.codec.version and column.type == state.codec.type:
        return column
    return encode_present(state, decode_present(state, column, version))


def decode_present(state: State, column: pa.Array, version: int) -> list[Any]:
    """The entities of a column; None where there is none."""
    if not column.null_count:
        return state.codec.decode(column, version)
    decoded = iter(state.codec.decode(column.drop_null(), version))
    return [next(decoded) if valid else None for valid in column.is_valid().to_pylist()]


def encode_present(state: State, entities: Sequence[Any]) -> pa.Array:
    """The column of entities; null where there is None."""
    present = [e for e in entities if e is not None]
    column = state.codec.encode(present)
    if len(present) == len(entities):
        return column
    gone = np.array([e is None for e in entities])
    return column.take(pa.array(np.cumsum(~gone) - 1, mask=gone))


def save(
    state: State,
    store: Store,
    name: str,
    keys: Sequence[bytes],
    hashes: Sequence[int],
    entities: Sequence[Any] | pa.Array,
) -> FileEntry:
    """Write the entities of canonical keys as one file. They are objects, of which None says that
    an entity is gone, or a column of today's codec."""
    order = sort_order(hashes, keys)
    if isinstance(entities, pa.Array):
        column = entities.take(pa.array(order))
    else:
        column = encode_present(state, [entities[i] for i in order])
    rows = Rows(
        np.array([hashes[i] for i in order], np.uint64),
        pa.array([keys[i] for i in order], pa.binary()),
        column,
        state.codec.version,
    )
    return write_rows(store, name, state.name, rows)
