"""Messages that are computed from their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bettong.engine.sources.base import Extent, PreparedSource
from bettong.engine.steps import step
from bettong.lineage.trace import MessageRange

_ENDLESS = 1 << 62


@dataclass(frozen=True)
class GeneratorSource(PreparedSource):
    """Message n is what a function gives for n.

    Attributes:
        make: gives the same bytes for a number whenever it is asked, on any worker.
        count: how many messages there are; None never ends.
    """

    make: Callable[[int], bytes]
    count: int | None = None

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(_ENDLESS, False) if self.count is None else Extent(self.count, True)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        with step(step_id, causes=causes, carries=[planned]):
            return list(map(self.make, range(planned.start, planned.stop)))
