"""Reading a state log while it is in use, or after: any version that is kept, without the
application's code. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from bettong.engine.keys import Key, canonical, hash_bytes
from bettong.engine.state.files import read_rows
from bettong.engine.state.manifest import Manifest, ManifestError, read_version, stored
from bettong.engine.state.store import Store
from bettong.lineage.errors import BettongError

T = TypeVar("T")
_TRIES = 20


def read_kept(store: Store, batch: int | None, read: Callable[[Manifest], T]) -> tuple[Manifest, T]:
    """The state after a batch, the last one by default, and what is read of it. A run that goes on
    gives up versions meanwhile, on a live feed ten in half a second: then it is begun again, with
    what is the last batch by now.

    Args:
        store: the state log.
        batch: whose state.
        read: what reads; it is called again when versions were given up before it was through.

    Raises:
        ManifestError: there is no such state.
        BettongError: what ``read`` raised while no version was given up, or each time.
    """
    for left in reversed(range(_TRIES)):
        before = set(stored(store))
        manifest = version(store, batch)
        try:
            return manifest, read(manifest)
        except BettongError:
            if not left or before.issubset(stored(store)):
                raise
    raise AssertionError("the last try has returned or raised")


def version(store: Store, batch: int | None = None) -> Manifest:
    """The state after a batch, the last one by default.

    Raises:
        ManifestError: there is none; the message says which there are.
    """
    epochs = dict(stored(store))  # of each batch the highest, since they come in order
    if not epochs:
        raise ManifestError("there is no state yet: no batch has been done")
    wanted = max(epochs) if batch is None else batch
    if wanted not in epochs:
        raise ManifestError(
            f"the state after batch {wanted} is not kept: there are batches {min(epochs)} to "
            f"{max(epochs)}"
        )
    try:
        return read_version(store, wanted, epochs[wanted])
    except BettongError:
        if (wanted, epochs[wanted]) in stored(store):
            raise
        return version(store, batch)  # it was given up meanwhile: others are kept


def entities_of(store: Store, manifest: Manifest, key: Key) -> dict[str, Any]:
    """For each state that has an entity of the key what the log holds of it: a dict of its fields
    if the state is a dataclass, else what its codec has written."""
    data = canonical(key)
    hashed = hash_bytes(data)
    hashes, keys = np.array([hashed], np.uint64), pa.array([data])
    found: dict[str, Any] = {}
    for state in sorted({f.state for f in manifest.files}):
        for entry in manifest.files_of(state, hashed, hashed + 1):
            rows = read_rows(store, entry)
            row = int(rows.find(hashes, keys, np.zeros(1, np.int64))[0])
            if row >= 0:
                if rows.entities[row].is_valid:
                    found[state] = rows.entities[row].as_py()
                break
    return found
