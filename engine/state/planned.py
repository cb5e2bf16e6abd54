"""What a batch takes of each stream, noted before any of it is read, so that whoever does the
batch again takes the same.

A note is made only where there is none: of two drivers that plan a batch, both go by the note of
the first. It is one line of JSON followed by a line with its CRC-32.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bettong.engine.state.manifest import newest_batch
from bettong.engine.state.store import Store
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import MessageRange

FOLDER = "planned"


class PlannedError(BettongError):
    """A note of a batch that is damaged or does not follow on the state."""


@dataclass(frozen=True)
class PlannedBatch:
    """What a batch takes.

    Attributes:
        batch: its number.
        starts, ends: for each stream the first message that it takes, and the first that it does
            not.
    """

    batch: int
    starts: Mapping[str, int]
    ends: Mapping[str, int]

    @property
    def ranges(self) -> list[MessageRange]:
        """Of the streams of which it takes anything."""
        return [
            MessageRange(stream, start, self.ends[stream])
            for stream, start in self.starts.items()
            if start < self.ends[stream]
        ]


def note(store: Store, planned: PlannedBatch) -> PlannedBatch:
    """Note what a batch takes, durably when this returns; gives what another driver has noted of
    it where that came first."""
    if store.create(_name(planned.batch), _to_bytes(planned)):
        return planned
    return _from_bytes(bytes(store.read(_name(planned.batch))), _name(planned.batch))


def noted(store: Store, batch: int) -> PlannedBatch | None:
    """The note of a batch, if there is one; raises PlannedError when it is damaged."""
    name = _name(batch)
    if name.removeprefix(f"{FOLDER}/") not in store.names(FOLDER):
        return None
    return _from_bytes(bytes(store.read(name)), name)


def all_noted(store: Store) -> list[PlannedBatch]:
    """The notes that are kept, in the batches' order."""
    names = (f"{FOLDER}/{name}" for name in store.names(FOLDER))
    return [_from_bytes(bytes(store.read(name)), name) for name in names]


def newest_fixed(store: Store) -> int:
    """The newest batch whose state is there, or at least what it takes: of those that follow
    nobody may have anything. -1 without any."""
    planned = (int(name.removesuffix(".json")) for name in store.names(FOLDER))
    return max(newest_batch(store), *planned, -1)


def remove_before(store: Store, batch: int) -> None:
    """Remove the notes of batches that are not done again."""
    for name in store.names(FOLDER):
        if int(name.removesuffix(".json")) < batch:
            store.remove(f"{FOLDER}/{name}")


def _name(batch: int) -> str:
    return f"{FOLDER}/{batch:012d}.json"


def _to_bytes(planned: PlannedBatch) -> bytes:
    line = json.dumps(asdict(planned), separators=(",", ":")).encode()
    return b"%s\n%08x\n" % (line, zlib.crc32(line))


def _from_bytes(data: bytes, name: str) -> PlannedBatch:
    line, _, checksum = data.partition(b"\n")
    if checksum != b"%08x\n" % zlib.crc32(line):
        raise PlannedError(f"{name} is damaged: its checksum is wrong; restore it from a copy")
    try:
        planned = PlannedBatch(**json.loads(line))
    except (TypeError, ValueError) as e:
        raise PlannedError(f"{name} is no note of a batch: {e}") from e
    if _name(planned.batch) != name:
        raise PlannedError(
            f"{name} holds batch {planned.batch}: it has been renamed or copied; restore it from "
            "a copy"
        )
    return planned
