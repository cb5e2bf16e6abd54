"""All entities of a state partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bettong.engine.functions import State
from bettong.engine.state.compaction import first_of_each
from bettong.engine.state.entities import FileCache, as_today
from bettong.engine.state.files import FileEntry


class Stored(NamedTuple):
    """Entities that are there, in the order of their hashes and then of their canonical keys."""

    keys: list[bytes]
    hashes: list[int]
    column: pa.Array


def scan(state: State, cache: FileCache, files: Sequence[FileEntry], low: int, high: int) -> Stored:
    """The entities whose hashes are in ``[low, high)``, as today's codec writes them.

    Args:
        state: what they are entities of.
        cache: reads the files.
        files: newest first.
        low: first hash.
        high: first hash after them.
    """
    if not files:
        return Stored([], [], pa.nulls(0, state.codec.type))
    parts = [cache.rows(entry) for entry in files]
    hashes = np.concatenate([p.hashes for p in parts])
    keys = pa.concat_arrays([p.keys for p in parts])
    column = pa.concat_arrays([as_today(state, p.entities, p.version) for p in parts])
    kept = first_of_each(hashes, keys, np.argsort(hashes, kind="stable"))
    inside = (hashes[kept] >= np.uint64(low)) & (hashes[kept] <= np.uint64(high - 1))
    kept = kept[inside & np.asarray(column.take(pa.array(kept)).is_valid())]
    places = pa.array(kept)
    return Stored(keys.take(places).to_pylist(), hashes[kept].tolist(), column.take(places))
