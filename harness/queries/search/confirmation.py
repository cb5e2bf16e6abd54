"""Whether what a run shows is its faults' own work: it shows again where every crash is a SIGKILL,
and while nothing else goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bettong.harness.checkers import guarantee_of, satisfies
from bettong.harness.events import Handler, ViolationConfirmed
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.judge import SinkVerdict
from bettong.lineage.errors import BettongError
from bettong.lineage.faults import FaultSet
from bettong.lineage.results import Guarantee
from bettong.lineage.search.executor import BudgetSpentError, Execution

OTHER_LAYOUT = 1
"""That of a replay whose rows are dealt out in another way."""


class DisturbedError(BettongError):
    """What runs show is not all their own: those that go on at the same time do not leave each
    other alone, or a driver that was spared at its crash does not leave its successor alone.

    Attributes:
        in_sight: whether what the query keeps is seen all the same, as far as is known.
        killed: whether a crash has to be a SIGKILL.
    """

    def __init__(self, message: str, *, in_sight: bool, killed: bool = False) -> None:
        super().__init__(message)
        self.in_sight = in_sight
        self.killed = killed


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Whether a violation shows again with every crash a SIGKILL.

    Attributes:
        layout: only when the replay's rows are dealt out in another way.
        in_time: whether there was time to see.
    """

    shown: bool
    layout: bool = False
    in_time: bool = True


class Runs(Protocol):
    """What can be run once more."""

    @property
    def real(self) -> bool:
        """Whether every crash is a SIGKILL anyway."""

    @property
    def expect(self) -> Guarantee:
        """The level that the query has to have."""

    @property
    def handler(self) -> Handler: ...

    def fault(self, id: str) -> QueryFault:
        """The fault of an id."""

    def killed(self, faults: Sequence[QueryFault], layout: int) -> SinkVerdict:
        """What the faults show when every crash is a SIGKILL."""

    def alone(self, faults: Sequence[QueryFault]) -> SinkVerdict | None:
        """What the faults show while nothing else is under way; None where nothing ever is."""


class Confirmations:
    """Those of one search.

    Attributes:
        confirmed: fault sets whose violations have shown again with every crash a SIGKILL.
    """

    def __init__(self, runs: Runs) -> None:
        self.confirmed: list[FaultSet] = []
        self._runs = runs
        self._kinds: set[frozenset[str]] = set()
        self._known: dict[FaultSet, Confirmation] = {}

    @property
    def show_less(self) -> bool:
        """Whether what was confirmed so far is less than the level that is expected."""
        return is_less({kind for found in self._kinds for kind in found}, self._runs.expect)

    def confirm(self, execution: Execution) -> Confirmation:
        """Whether a violation shows again with every crash a SIGKILL; asked once for each set.
        What the time did not allow to see is not shown."""
        known = self._known.get(execution.schedule)
        if known is None:
            try:
                known = self._known[execution.schedule] = self._ask(execution)
            except BudgetSpentError:
                return Confirmation(shown=False, in_time=False)
            if known.shown:
                kinds = _kinds_of(execution)
                self.confirmed.append(execution.schedule)
                self._kinds.add(kinds)
                faults = tuple(sorted(execution.schedule))
                self._runs.handler(ViolationConfirmed(faults, tuple(sorted(kinds))))
        return known

    def confirm_first(self, execution: Execution) -> None:
        """Confirm a violation if it is the first one of its kinds. Raises DisturbedError as
        :meth:`account_for` does."""
        if _kinds_of(execution) not in self._kinds and not self.confirm(execution).shown:
            self.account_for(execution)

    def account_for(self, execution: Execution) -> None:
        """Raises DisturbedError for a violation that no SIGKILL has shown: what goes on beside it
        has made it, if it is none while nothing else goes on, or else the process that was spared.
        What is under way ends first. Where the time is up it is not asked."""
        if self._runs.real or execution.schedule not in self._known:
            return
        faults, kinds = self._faults_of(execution), _kinds_of(execution)
        try:
            alone = self._runs.alone(faults)
        except BudgetSpentError:
            return
        if alone is not None and alone.kinds != kinds:
            reason = (
                f"what {named(execution.schedule)} shows beside another run it does not show alone"
            )
            raise DisturbedError(reason, in_sight=True)
        if any(fault.crashes for fault in faults):
            reason = (
                f"{named(execution.schedule)} shows {' and '.join(sorted(kinds))} only while its "
                "process lives on, whose memory keeps something; each crash is a SIGKILL now"
            )
            raise DisturbedError(reason, in_sight=True, killed=True)

    def expect_no_more_when_killed(self, execution: Execution) -> None:
        """Raises DisturbedError when a SIGKILL shows more than the same crash of a driver whose
        process was spared: that has kept in its memory what dies with it."""
        faults = self._faults_of(execution)
        if self._runs.real or execution.blind or not any(fault.crashes for fault in faults):
            return
        more = self._runs.killed(faults, OTHER_LAYOUT).kinds - _kinds_of(execution)
        if more:
            raise DisturbedError(
                f"{named(execution.schedule)} shows {' and '.join(sorted(more))} only when its "
                "process dies too, whose memory keeps something; each crash is a SIGKILL now",
                in_sight=True,
                killed=True,
            )

    def _ask(self, execution: Execution) -> Confirmation:
        faults, kinds = self._faults_of(execution), _kinds_of(execution)
        if not faults or self._runs.killed(faults, 0).kinds == kinds:
            return Confirmation(shown=True)
        return Confirmation(self._runs.killed(faults, OTHER_LAYOUT).kinds == kinds, layout=True)

    def _faults_of(self, execution: Execution) -> list[QueryFault]:
        return [self._runs.fault(id) for id in sorted(execution.schedule)]


def is_less(kinds: set[str], level: Guarantee) -> bool:
    """Whether anomalies of these kinds show less than a level."""
    return "Reorder" in kinds or not satisfies(guarantee_of(kinds), level)


def named(schedule: FaultSet) -> str:
    """A fault set, for people."""
    return " + ".join(sorted(schedule)) or "no fault"


def _kinds_of(execution: Execution) -> frozenset[str]:
    return frozenset(a.kind for a in execution.anomalies)
