"""What a run is of and what it is fed with: the seam between a sink and a whole job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bettong.harness.queries.faults.operations import OperationalEvent
from bettong.harness.queries.run.incarnations import INCARNATION_S
from bettong.harness.queries.run.job import CALL, Target
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import TraceEvent


class Workload(Protocol):
    """One query under test, with its input; used for one run after the other.

    Attributes:
        target: how the host finds the query.
        call: ``module:function`` that does an incarnation in the driver host.
        most_incarnations: how often the query is started at most.
        patience_s: after so long without a word the query is taken to do nothing more.
        added: what was added to the topics that are read, in the present run.
    """

    target: Target
    call: str
    most_incarnations: int
    patience_s: float
    added: str

    def begin(self, run: str, state: Path, event: OperationalEvent) -> None:
        """A new run, with its durable state in ``state`` and what the day brings."""

    def starts(self, incarnation: int) -> None:
        """The query is started, for the so-manieth time."""

    def arguments(self, incarnation: int, layout: int, anew: bool) -> Mapping[str, Any]:
        """What ``call`` is to know beside the run's own facts."""

    def observe(self, event: TraceEvent) -> None:
        """A step is taken; its process waits until this returns."""

    def checkpoint(self, state: Path) -> Path | None:
        """Where the query keeps its checkpoint, as far as is known."""

    def drained(self, committed: int, failed: bool) -> bool:
        """Whether all input was consumed and recorded, given how many batches were recorded, and
        whether the last incarnation failed."""

    def in_vain(self) -> str:
        """Why a query that takes steps is waited for no longer; nothing as long as it may end."""

    def end(self) -> None:
        """The run is over."""


@dataclass
class SinkWorkload:
    """The rows that Bettong makes, written by a sink."""

    target: Target
    source: Input
    call: str = CALL
    most_incarnations: int = 8
    patience_s: float = INCARNATION_S
    added: str = ""
    _event: OperationalEvent = field(default_factory=lambda: OperationalEvent("", ""))

    def begin(self, run: str, state: Path, event: OperationalEvent) -> None:
        """The rows are those that the event leaves. Raises UsageError for an event of jobs."""
        if event.repeat is not None or event.more_partitions:
            raise UsageError(f"{event.id} is for jobs: a sink is not fed step by step")
        self._event = event

    def starts(self, incarnation: int) -> None:
        """The source makes its rows itself."""

    def arguments(self, incarnation: int, layout: int, anew: bool) -> Mapping[str, Any]:
        """The sink's target, and the rows."""
        source = self._event.input(self.source, incarnation)
        if anew:
            source = self._event.again(self.source)
        return {"target": asdict(self.target), "source": {**asdict(source), "layout": layout}}

    def observe(self, event: TraceEvent) -> None:
        """Nothing depends on the query's progress."""

    def checkpoint(self, state: Path) -> Path | None:
        """Where the sink is told to keep it."""
        return state / "checkpoint"

    def drained(self, committed: int, failed: bool) -> bool:
        """Every batch of the source is recorded."""
        return committed == self._event.always_of(self.source).batches

    def in_vain(self) -> str:
        """The source ends by itself."""
        return ""

    def end(self) -> None:
        """Nothing to be put away."""
