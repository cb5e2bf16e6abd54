"""Planners of live batches with a mistake."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from bettong.engine.batch.planning import Ends, Planner
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.sources.base import Extent, StreamSource
from bettong.engine.state.planned import FOLDER, PlannedBatch
from bettong.lineage.trace import MessageRange


class _Overwrites(Planner):
    def note(self, planned: PlannedBatch) -> PlannedBatch:
        """Note a batch over whatever has been noted of it."""
        line = json.dumps(asdict(planned), separators=(",", ":")).encode()
        name = f"{FOLDER}/{planned.batch:012d}.json"
        self.store.publish(name, b"%s\n%08x\n" % (line, zlib.crc32(line)))
        return planned


class _PlansAgain(_Overwrites):
    def known(self, batch: int) -> PlannedBatch | None:
        before = super().known(batch)
        if before is None:
            return None
        found = self.close(batch, before.starts)
        return before if found is None else self.note(PlannedBatch(batch, before.starts, found))


class PlansAgain(BatchProtocol):
    """A batch that is done again is planned again: its wait ends when more has come."""

    planner = _PlansAgain


class PlansTwice(BatchProtocol):
    """Looks whether a batch has been noted, and then notes it, whoever has done so meanwhile."""

    planner = _Overwrites


class _KeepsItsOwnEnds(Planner):
    def note(self, planned: PlannedBatch) -> PlannedBatch:
        super().note(planned)
        return planned


class KeepsItsOwnEnds(BatchProtocol):
    """Leaves another driver's note as it is, and does what it has planned itself."""

    planner = _KeepsItsOwnEnds


class _NotesShortBatches(Planner):
    def note(self, planned: PlannedBatch) -> PlannedBatch:
        full = self.batching.messages
        is_full = all(planned.ends[s] == start + full for s, start in planned.starts.items())
        return planned if is_full else super().note(planned)


class NotesShortBatches(BatchProtocol):
    """Notes only those batches that time has closed: a full one is the same for everybody, but for
    a driver that has found less before."""

    planner = _NotesShortBatches


@dataclass(frozen=True)
class _NeverEnds:
    """A stream of which nobody has heard that it has ended."""

    stream: StreamSource

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(self.stream.extent(upto, wait).end, False)

    def read(
        self, planned: MessageRange, step: str, causes: Sequence[str]
    ) -> Sequence[bytes] | pa.Array:
        return self.stream.read(planned, step, causes)

    def plan(self, planned: MessageRange, step: str) -> None:
        self.stream.plan(planned, step)

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        self.stream.release(upto, step, causes)


class _ForgetsSilentEnds(Planner):
    _is_new = True

    def close(self, batch: int, ends: Ends) -> dict[str, int] | None:
        if self._is_new and batch:
            self.sources = {
                name: source if ends[name] else _NeverEnds(source)
                for name, source in self.sources.items()
            }
        self._is_new = False
        return super().close(batch, ends)


class ForgetsSilentEnds(BatchProtocol):
    """After a restart knows of the streams that have messages in the state whether they have ended,
    and waits for the others for ever."""

    planner = _ForgetsSilentEnds
