"""Operational events: stops and starts, more rows, no rows, rows that the target refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from bettong.harness.faults.kinds import Crash
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.sink.rows import Input


@dataclass(frozen=True)
class OperationalEvent(QueryFault):
    """One of them.

    Attributes:
        name: its id.
        sentence: what happens.
        always: what it changes of the input.
        at_least: what it makes so large, where the input has less.
        at_first: what it changes of the input of the first incarnation only.
        anew: the checkpoint is lost when all was written.
        new_rows: what is written then are rows that follow all others.
        odd: the batch that has a row that many a target refuses.
        crash: the driver dies there.
        ahead_s: from the first restart on the clock of Python and of SQL is so far ahead.
        more_cores: from the first restart on Spark has two cores instead of one.
        repeat: the step of a job's input that its source sends once more, with the next one.
        more_partitions: the topics that a job reads get one partition more: at the restart or,
            where nothing dies, before step 2.
        refusable: rows may be missing if the query stands still and says why; of batches that are
            larger, from the first one on.
    """

    operational: ClassVar[bool] = True

    name: str
    sentence: str
    always: Mapping[str, int] = field(default_factory=dict)
    at_least: Mapping[str, int] = field(default_factory=dict)
    at_first: Mapping[str, int] = field(default_factory=dict)
    anew: bool = False
    new_rows: bool = False
    odd: int | None = None
    crash: Point | None = None
    ahead_s: int = 0
    more_cores: bool = False
    more_partitions: bool = False
    refusable: bool = False
    repeat: int | None = None

    def input(self, source: Input, incarnation: int) -> Input:
        """The rows of an incarnation."""
        changed = self.at_first if incarnation == 1 else {}
        return replace(self.always_of(source), **changed)

    def again(self, source: Input) -> Input:
        """The rows that are written with a new checkpoint."""
        return replace(self.always_of(source), first=self._first(source))

    def expected(self, source: Input) -> Input:
        """All rows that are to be there in the end."""
        always = self.always_of(source)
        return replace(always, batches=always.batches + self._first(source))

    def always_of(self, source: Input) -> Input:
        """The rows that each incarnation may have, and all but the first one has."""
        odd = {} if self.odd is None else {"odd": self.odd * source.rows + _AMID_BATCH}
        grown = {name: max(getattr(source, name), n) for name, n in self.at_least.items()}
        return replace(source, **self.always, **grown, **odd)

    def rows_of(self, rows: int) -> int:
        """How many rows a batch has that has so many otherwise."""
        return max(rows, self.at_least.get("rows", 0)) if rows else 0

    def _first(self, source: Input) -> int:
        return source.batches if self.new_rows else 0

    @property
    def id(self) -> str:
        return self.name

    @classmethod
    def parse(cls, id: str) -> OperationalEvent | None:
        return KNOWN.get(id)

    def describe(self) -> str:
        return self.sentence

    @property
    def placed(self) -> tuple[Crash, ...]:
        return () if self.crash is None else (Crash(DRIVER, self.crash),)

    @property
    def cores(self) -> bool:
        return self.more_cores

    @property
    def bound(self) -> str:
        return "operation"

    @property
    def stands_from(self) -> int | None:
        """The batch from which on the query may stand still and say why; None where it may not."""
        if not self.refusable:
            return None
        if "rows" in self.at_least:
            return 0
        return self.odd if self.crash is None else self._dies_in

    @property
    def may_stand_first(self) -> bool:
        """Whether the query may stand still before the driver dies."""
        at, dies_in = self.stands_from, self._dies_in
        return at is not None and dies_in is not None and at < dies_in

    @property
    def _dies_in(self) -> int | None:
        """The batch in which the driver dies, if it does."""
        return None if self.crash is None else StepId.parse(self.crash.step).batch

    @property
    def mechanism(self) -> str:
        return "replay" if self.replays else self.id

    @property
    def between_batches(self) -> bool:
        return bool(self.at_first) and self.crash is None

    @property
    def replays(self) -> bool:
        return self.crash is not None

    @property
    def swallowable(self) -> bool:
        return self.refusable


ORDINARY = OperationalEvent("", "")
"""Nothing but what the source gives."""


def event_of(faults: Iterable[QueryFault]) -> OperationalEvent:
    """The operational event among faults that fire together; ORDINARY where there is none."""
    return next((fault for fault in faults if isinstance(fault, OperationalEvent)), ORDINARY)


_AMID_BATCH = 5
_REPLAYED = Point("batch=1/commits")

STOPPED = OperationalEvent(
    "stop(driver, after batch=1/commits)",
    "The query was stopped in good order after batch 1, and started again when there were more "
    "rows.",
    at_first={"batches": 2},
)
MORE = OperationalEvent(
    "crash-and-more-rows(driver, before batch=1/commits)",
    "The driver died after batch 1 was written, before Spark recorded that (commits/1); when the "
    "query was started again there were more rows.",
    at_first={"batches": 2},
    crash=_REPLAYED,
)
LATER = OperationalEvent(
    "crash-and-later(driver, before batch=1/commits)",
    "The driver died after batch 1 was written, before Spark recorded that (commits/1); the query "
    "was started again 25 hours later, by the clock of Python and of Spark's SQL.",
    crash=_REPLAYED,
    ahead_s=25 * 3600 + 60,
    refusable=True,
)
EMPTY = OperationalEvent("empty(batch=2)", "Batch 2 had no rows.", always={"empty": 2})
ODD = OperationalEvent(
    "odd-row(batch=2)",
    "A row of batch 2 had a key of 70,000 characters with a NUL among them.",
    odd=2,
    refusable=True,
)
LONGER = OperationalEvent(
    "crash-in-the-eleventh(driver, before batch=10/commits)",
    "There were 12 batches; the driver died after batch 10 was written, before Spark recorded that "
    "(commits/10); the query was started again.",
    at_least={"batches": 12},
    crash=Point("batch=10/commits"),
)
"""What goes by a batch's number as text takes 10 for less than 9."""
TWELVE = OperationalEvent("batches(12)", "There were 12 batches.", at_least=LONGER.at_least)
"""Not tried by itself: it tells whether what :data:`LONGER` shows needs a crash."""
LARGER = OperationalEvent(
    "crash-and-large-batches(driver, before batch=1/commits)",
    "Each batch had 1200 rows; the driver died after batch 1 was written, before Spark recorded "
    "that (commits/1); the query was started again.",
    always={"batches": 2},
    at_least={"rows": 1200},
    crash=_REPLAYED,
    refusable=True,
)
"""More than what many a client or server takes, or gives, at a time: 500, or 1000."""
CORES = OperationalEvent(
    "crash-and-two-cores(driver, before batch=1/commits)",
    "The driver died after batch 1 was written, before Spark recorded that (commits/1); it was "
    "started again with two cores instead of one.",
    crash=_REPLAYED,
    more_cores=True,
)
NEW_CHECKPOINT = OperationalEvent(
    "new-checkpoint",
    "When all was written, the checkpoint was lost, and the query was started again without one, "
    "from the first row.",
    anew=True,
)
NEW_ROWS = OperationalEvent(
    "new-checkpoint(new rows)",
    "When all was written, the checkpoint was lost, and the query was started again without one, "
    "on new rows only.",
    anew=True,
    new_rows=True,
)
REPEATED = OperationalEvent(
    "repeat(step=1)", "The source sent the rows of step 1 once more, with step 2.", repeat=1
)
PARTITIONS = OperationalEvent(
    "more-partitions(before step=2)",
    "The topic got one partition more before step 2, and rows went there from then on.",
    more_partitions=True,
)
REPLAYED_PARTITIONS = OperationalEvent(
    "crash-and-more-partitions(driver, before batch=1/commits)",
    "The driver died after batch 1 was written, before Spark recorded that (commits/1); when the "
    "query was started again the topic had one partition more.",
    crash=_REPLAYED,
    more_partitions=True,
)
OPERATIONAL_EVENTS = (STOPPED, MORE, LATER, EMPTY, ODD, LONGER, LARGER)
KNOWN = {
    event.id: event
    for event in (
        *OPERATIONAL_EVENTS,
        *(CORES, REPEATED, NEW_CHECKPOINT, NEW_ROWS, PARTITIONS, REPLAYED_PARTITIONS, TWELVE),
    )
}
