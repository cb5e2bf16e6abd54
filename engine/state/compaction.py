"""Merging state files, so that a key is looked for in few of them.

Files of a state partition are merged in tiers: as soon as ``fan_in`` of one tier have come
together they become one file of the next, together with all that is newer. So a row is written
again once for each tier, and a partition has at most ``fan_in - 1`` files of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.engine.functions import State
from bettong.engine.state.entities import as_today
from bettong.engine.state.files import FileEntry, Rows, read_rows, write_rows
from bettong.engine.state.store import Store

_MOST_BYTES = (1 << 31) - 1
"""What the texts of a column may have in one array, as Arrow counts them."""


def to_merge(files: Sequence[FileEntry], low: int, high: int, fan_in: int) -> tuple[FileEntry, ...]:
    """The files of a state partition that should become one, newest first; none while they are
    few.

    Files that are too large to become one stay as they are: more partitions make smaller ones.
    Only files that lie wholly within the partition's hashes ``[low, high)`` are merged. A file
    that does not, because it was written when there were other partitions, and all that is older
    than it, stays.

    Args:
        files: those with hashes of the partition, newest first.
        low: first hash of the partition.
        high: first hash after it.
        fan_in: how many files of one tier are merged.
    """
    own: list[FileEntry] = []
    for entry in files:
        if not (low <= entry.low and entry.high < high):
            break
        own.append(entry)
    full = [tier for tier, count in Counter(f.tier for f in own).items() if count >= fan_in]
    if not full:
        return ()
    last = max(i for i, f in enumerate(own) if f.tier == min(full))
    chosen = own[: last + 1]
    return tuple(chosen) if sum(f.length for f in chosen) <= _MOST_BYTES else ()


def merge(
    state: State, store: Store, files: Sequence[FileEntry], name: str, oldest: bool
) -> FileEntry:
    """Write the newest row of each key of some files as one file.

    Args:
        state: what the files are of.
        store: the state log.
        files: newest first, with nothing between them in age that has the same keys.
        name: of the new file.
        oldest: whether no older file has hashes of these; then rows of entities that are gone
            are left out, but for one if nothing else is left.
    """
    parts = [read_rows(store, entry) for entry in files]
    hashes = np.concatenate([p.hashes for p in parts])
    keys = pa.concat_arrays([p.keys for p in parts])
    entities = pa.concat_arrays([as_today(state, p.entities, p.version) for p in parts])
    order = np.argsort(hashes, kind="stable")  # so the newest row of a key comes first
    kept = first_of_each(hashes, keys, order)
    if oldest:
        alive = kept[np.asarray(entities.take(pa.array(kept)).is_valid())]
        kept = alive if len(alive) else kept[:1]
    places = pa.array(kept)
    rows = Rows(hashes[kept], keys.take(places), entities.take(places), state.codec.version)
    return write_rows(store, name, state.name, rows, max(f.tier for f in files) + 1)


def first_of_each(
    hashes: np.ndarray[Any, np.dtype[np.uint64]],
    keys: pa.Array,
    order: np.ndarray[Any, np.dtype[np.int64]],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Of places in the order of hashes the first of each key, keys of one hash in their order."""
    sorted_hashes, sorted_keys = hashes[order], keys.take(pa.array(order))
    same_hash = sorted_hashes[1:] == sorted_hashes[:-1]
    if len(order) > 1:
        same_key = np.asarray(pc.equal(sorted_keys[1:], sorted_keys[:-1]))
        if (same_hash & ~same_key).any():  # hashes that collide
            newest: dict[tuple[int, bytes], int] = {}
            for place in order.tolist():
                newest.setdefault((int(hashes[place]), keys[place].as_py()), place)
            return np.array([newest[row] for row in sorted(newest)], np.int64)
    first: np.ndarray[Any, np.dtype[np.int64]] = order[np.concatenate([[True], ~same_hash])]
    return first


def replaced(
    files: Sequence[FileEntry], merges: Mapping[tuple[FileEntry, ...], FileEntry]
) -> tuple[FileEntry, ...]:
    """The files with each merge in the place of what it was made of, where that is all there."""
    listed = set(files)
    last = {old[-1]: new for old, new in merges.items() if listed.issuperset(old)}
    gone = {f for old in merges if listed.issuperset(old) for f in old}
    return tuple(last.get(f, f) for f in files if f in last or f not in gone)
