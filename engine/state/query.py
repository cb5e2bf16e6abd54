"""Reading a state log while it is in use, or after: any version that is kept, without the
application's code. Nothing is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.keys import Key, canonical, hash_bytes
from bettong.engine.state.files import read_rows
from bettong.engine.state.manifest import Manifest, ManifestError, read_version, stored
from bettong.engine.state.store import Store


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
    return read_version(store, wanted, epochs[wanted])


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
