"""What every kind of fault of a query has: one class says how it is written and what happened, how
it is carried out, where a search may try it, and what it explains of what a reader saw.

A fault is a frozen value with a stable ``id``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.wire import CutPoint
from bettong.harness.wire.armed import Lasts
from bettong.lineage.faults import Fault as LineageFault
from bettong.lineage.trace import TraceEvent


class Injection(Protocol):
    """What a run can do besides what it does at steps.

    Attributes:
        evidence: of the faults that have fired, by id.
    """

    evidence: dict[str, str]

    @property
    def crash(self) -> Callable[[], None]:
        """Crashes the driver now."""

    def crash_when_recorded(self) -> None:
        """Crashes the driver as soon as Spark has recorded a batch; if it does not, soon."""

    def hit_request(
        self,
        fault: str,
        point: CutPoint,
        lasts: Lasts,
        action: Callable[[], object] | None,
        close: bool,
        answer: bytes = b"",
    ) -> None:
        """A request meets its fate; ``action`` is called there, and its connection closed, after
        ``answer`` was given instead of the server's."""

    def restart_server(self, endpoint: str) -> None:
        """The server of an endpoint is killed and started again."""

    def pause_server(self, fault: str, endpoint: str) -> None:
        """It stands still until the client gives up; where it is not ours, what the client has sent
        it is on its way so long, and this returns then."""

    def say_nothing(self, fault: str) -> None:
        """Returns when the client has given up."""

    def hold_driver(self, fault: str) -> None:
        """The driver stands still, with what it has sent last on its way, until another one that
        has taken over is done or cannot go on without it. Returns then."""

    def wake_amid(self, fault: str, until: CutPoint) -> None:
        """When the driver that has taken over makes this request the one that stands still goes
        on, and the request waits until that has come to its end."""

    def hold_driver_at(self, fault: str) -> None:
        """The same at a step that the driver takes, the first time."""

    def wake_now(self, fault: str) -> None:
        """The driver that stands still goes on; returns when it has come to its end."""

    def goes_past(self, fault: str) -> None:
        """The driver that has taken over does more of a batch than the one that stands still."""

    def outlast_client(self, fault: str, what: str) -> None:
        """What hits a request has fired, and ends when the client gives up; ``what`` it meets."""

    def turn_away(self, fault: str, endpoint: str) -> None:
        """From now on one connection to an endpoint is refused."""

    def lose_executor_at(self, fault: str, event: TraceEvent, goes_on: bool) -> None:
        """Spark loses sight of the executor that is at this step, and is held there."""

    def tried_again(self, fault: str) -> None:
        """A second attempt has done the work of the one that was lost."""


class QueryFault(ABC):
    """One fault of one kind.

    Attributes:
        on_wire: whether it hits a request.
        operational: whether it is no fault, but what any query meets.
        loses_executor: whether Spark loses sight of an executor.
        beside_steps: whether the run's injector says that it has fired.
    """

    __slots__ = ()

    on_wire: ClassVar[bool] = False
    operational: ClassVar[bool] = False
    loses_executor: ClassVar[bool] = False
    beside_steps: ClassVar[bool] = False

    # --- how it is written

    @property
    def id(self) -> str:
        """Stable: the same in every run of the same query. One that is more, or other, than a
        single fault at a step has an id of its own."""
        (placed,) = self.placed
        return placed.id

    @classmethod
    @abstractmethod
    def parse(cls, id: str) -> QueryFault | None:
        """The fault of an id; None when that is of another kind. Raises ScheduleError."""

    @abstractmethod
    def describe(self) -> str:
        """What happened, for someone who has never seen the sink."""

    # --- how it is carried out

    @property
    def placed(self) -> tuple[Fault, ...]:
        """The faults at steps that carry it out."""
        return ()

    def fired(self, proofs: Sequence[str]) -> str:
        """Evidence that it has fired as a whole, given that of each of the faults at steps, empty
        for one that has not; empty if it has not."""
        return "; ".join(proofs) if all(proofs) else ""

    @property
    def takes_over(self) -> bool:
        """Whether another driver takes over while the first one lives on."""
        return False

    @property
    def wakes_amid(self) -> bool:
        """Whether the first one goes on amid a batch that it has not seen, whichever of the drivers
        after it has that one: a query that ends by itself is started for each batch."""
        return False

    @property
    def unheard(self) -> bool:
        """Whether nothing more is heard on a connection, however long its client waits."""
        return False

    @property
    def cores(self) -> bool:
        """Whether the query is started again with more cores."""
        return False

    def arm(self, run: Injection, again: bool) -> None:  # noqa: B027 - most are placed at steps
        """A run has begun; ``again``: the query has been started again for the first time."""

    def met(self, event: TraceEvent, run: Injection) -> None:  # noqa: B027
        """A step is taken, and its process waits until this returns."""

    def proven(self, evidence: str) -> bool:
        """Whether this is evidence that it has fired as a whole."""
        return True

    # --- where a search tries it

    @property
    @abstractmethod
    def bound(self) -> str:
        """What the bounds of a search count it as."""

    @property
    def place(self) -> str:
        """What it hits."""
        return DRIVER

    @property
    def rank(self) -> int | None:
        """Where it stands among the faults that sinks fail of most: of the sinks that ship and are
        broken the driver's death before ``commits/N`` breaks most, then a lost reply, a connection
        that is refused, a zombie, a driver held at a request. None for all others."""
        return None

    @property
    def recovers_from(self) -> Point | None:
        """The moment at which it fires, if another fault can hit the recovery from it."""
        return None

    def left(self, crash_point: CrashPoint, nothing_yet: bool) -> str:
        """What is equal for all faults that leave the same behind.

        Args:
            crash_point: where it fires.
            nothing_yet: it fails an attempt that has left nothing so far.
        """
        return self.id

    def for_search(self, time: int) -> LineageFault:
        """The fault as the search knows it."""
        return LineageFault(self.id, self.bound, "", self.place, time)

    # --- what it explains

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """What kind of thing goes wrong: faults of one mechanism are shown once."""

    @property
    def crashes(self) -> bool:
        """Whether the driver dies of it."""
        return False

    @property
    def between_batches(self) -> bool:
        """Whether the query is started again where no batch was begun and not recorded as done."""
        return False

    @property
    def replays(self) -> bool:
        """Whether the query is started again in the midst of a batch."""
        return self.crashes and not self.between_batches

    @property
    def forgets_answered(self) -> bool:
        """Whether the server may not keep what it has answered for."""
        return False

    @property
    def breaks_off(self) -> bool:
        """Whether the rows of an attempt break off: its Python code sees them end as usual."""
        return False

    @property
    def swallowable(self) -> bool:
        """Whether it is an error that the sink can catch and forget."""
        return False

    @property
    def doubled(self) -> str:
        """Who wrote rows twice, when no replay did; empty for nobody."""
        return ""
