"""What every kind of fault has: one class says how it is written, what it hits, how it begins
and ends, and where a search may try it.

A fault is a frozen value with a stable ``id``, placed in logical time: at which step, before or
after it, the how-manieth time it is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

from bettong.engine.storage.durability import Keep
from bettong.harness.faults.actuator import RunActuator
from bettong.harness.faults.entry import Entry
from bettong.harness.faults.point import Point, Topology
from bettong.lineage.faults import LOSS
from bettong.lineage.trace import Phase, TraceEvent

Premise = Literal["arrives", "answered", "ends", "stays", "lives before", "lives after"]
"""What a step rests on: its request arrives, its reply arrives, it ends well besides that, what it
has written stays, its node lives just before and just after it."""


@dataclass(frozen=True, slots=True)
class Go:
    """The answer to a step that may go on; with ``errno`` it fails as the system would, with
    ``call`` not the step but that call to the disk (without ``errno``: a write of it is short), and
    if it is ``lasting`` all that follow in the step, if it is ``done`` once the call has done its
    work, with ``read`` that time that something is opened to be read; with ``cut`` the process ends
    before that sync; with ``hold`` the thread stands still before that call; ``answer`` is for a
    step that asks, so many moments ``later`` than the scenario says."""

    errno: int | None = None
    cut: int = 0
    hold: int = 0
    call: int = 0
    answer: Any = None
    later: int = 0
    lasting: bool = False
    read: int = 0
    done: bool = False


class DiskCall(NamedTuple):
    """A call to the disk: the how-manieth since the edge of a step, what it does, and to which
    file: its path then, without what is random in it; empty where that is not known."""

    number: int
    operation: str
    file: str = ""


class DiskUse(NamedTuple):
    """What a thread has done to its disk at a moment, up to its next one.

    Attributes:
        calls: the operation of each, in order; empty text for one that had failed by itself. None
            where that is not known, as of a thread that was killed meanwhile.
        reads: how many files and folders it has opened to read; None likewise.
    """

    calls: tuple[str, ...] | None = None
    reads: int | None = None

    def has_call(self, number: int) -> bool:
        """Whether it may have made so many."""
        return self.calls is None or number <= len(self.calls)

    def has_sync(self, number: int) -> bool:
        """Whether it may have synced so often."""
        return self.calls is None or number <= sum(c.startswith("sync") for c in self.calls)

    def has_read(self, number: int) -> bool:
        """Whether it may have opened so many to read."""
        return self.reads is None or number <= self.reads


class PowerLoss(NamedTuple):
    """A moment at which a power cut takes something away: an edge of a step of the node, or with
    ``sync`` right before the so-manieth sync within the step; and what it leaves."""

    node: str
    at: Point
    sync: int
    keep: Keep


@dataclass(frozen=True, slots=True)
class Begun:
    """A fault is in force.

    Attributes:
        evidence: for that; empty while it has hit nothing yet.
        done: it has fired already, whatever comes.
        answer: to the step at which it begins, where the fault is in the answer. It is not in force
            when the step is not given it: its process is dead, or another fault has answered.
    """

    evidence: str
    done: bool = False
    answer: Go | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A fault is no longer in force.

    Attributes:
        evidence: what it did.
        fired: whether it has fired, as far as this shows.
    """

    evidence: Sequence[str] = ()
    fired: bool = True


class TakenStep(Protocol):
    """A step that a run has taken, as a search reads it from the trace."""

    @property
    def step(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def node(self) -> str: ...
    @property
    def link(self) -> str | None: ...
    @property
    def calls(self) -> Sequence[DiskCall]:
        """What it has done to the disk."""

    @property
    def later_calls(self) -> Sequence[DiskCall]:
        """What its thread has done to the disk after it, before the next step."""

    @property
    def reads(self) -> Sequence[str]:
        """The files and folders that it has opened to read, each as often as it has."""

    @property
    def later_reads(self) -> Sequence[str]:
        """Those that its thread has after it, before the next step."""


class TakenSteps(Protocol):
    """What a search knows of a whole run."""

    def apart(self, step: TakenStep) -> Iterable[tuple[tuple[str, ...], tuple[str, ...], Point]]:
        """The two sides of each partition that loses this request, and when it begins."""

    def tried_again(self, step: TakenStep) -> Point | None:
        """When whoever has asked for this step, and gets no answer, begins to ask again."""

    def opened_next(self, step: TakenStep) -> Point | None:
        """When the driver that follows the one of this step has its epoch, and is about to begin it
        at its first sink; None where this one has begun its own at none."""

    def overtaken_by(self, step: TakenStep) -> Point | None:
        """When a server has done so much more for the same client that this step, if it was taken
        only then, would do harm; None where it does none, or nothing followed."""

    def power_losses(self, step: TakenStep) -> Iterable[PowerLoss]:
        """The power cuts that take away something of what this step has written."""


class Fault(ABC):
    """One fault of one kind.

    Attributes:
        kind: its name in schedule files, the first word of its id.
        bound: what the bounds of a search count it as.
        needed, optional: its fields in a schedule file.
        premises: those of a step's premises that it can take away.
        reports: what a step's id begins with by which a process says what this fault has made of
            it, where the process itself carries it out.
    """

    __slots__ = ()

    kind: ClassVar[str]
    bound: ClassVar[str] = LOSS
    needed: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    premises: ClassVar[tuple[Premise, ...]] = ()
    reports: ClassVar[str] = ""

    # --- how it is written

    @property
    @abstractmethod
    def id(self) -> str:
        """Stable: the same in every run, ``KIND(…)``."""

    @classmethod
    @abstractmethod
    def parse(cls, entry: Entry) -> Self:
        """The fault of a schedule file's entry; raises ScheduleError."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The entry, as :meth:`parse` takes it: JSON values only."""

    @abstractmethod
    def describe(self) -> str:
        """What happened, as a clause for someone who has never seen the system."""

    def counts_as(self, kinds: AbstractSet[str]) -> str:
        """What bounds count it as that distinguish these kinds."""
        return self.bound

    # --- what it hits

    @property
    @abstractmethod
    def points(self) -> tuple[Point, ...]:
        """The moments that it names, the one at which it begins first."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it names."""
        return ()

    @property
    def links(self) -> tuple[str, ...]:
        """The links that it names."""
        return ()

    @property
    def repeated_links(self) -> tuple[str, ...]:
        """Links whose requests it delivers twice, or whose connections it leaves silent for good: a
        repeater has to stand before these from the beginning of the run."""
        return ()

    @property
    def variety(self) -> str:
        """How it hits, where there are several ways at one moment."""
        return ""

    @property
    def place(self) -> str:
        """What it hits: faults that leave different things behind hit different places."""
        return self.id

    @property
    def noted_at(self) -> str:
        """The node at which the trace notes it; empty for none."""
        named = (*self.nodes, *(link.partition("->")[0] for link in self.links), "")
        return named[0]

    @property
    def kills(self) -> tuple[str, ...]:
        """Nodes whose processes it ends."""
        return ()

    @property
    def takes_away(self) -> tuple[str, ...]:
        """Nodes that it takes away: what they do next, their successors do."""
        return self.kills

    @property
    def loses(self) -> bool:
        """Whether what it hits on its links is lost."""
        return False

    @property
    def is_silent(self) -> bool:
        """Whether it lasts until somebody gives up waiting for an answer."""
        return len(self.points) > 1

    @property
    def link_held(self) -> str | None:
        """The link that nobody else may use while it lasts, which is as long as its step."""
        return None

    @property
    def parts_for_good(self) -> bool:
        """Whether it keeps nodes from each other for longer than a client has patience."""
        return False

    @property
    def ends_patience(self) -> bool:
        """Whether it outlasts the patience of a driver, which has none in a run with it."""
        return False

    @property
    def replaces(self) -> bool:
        """Whether another process takes the place of a node that lives on."""
        return False

    @property
    def steps_first(self) -> int:
        """Who comes to its end waits there until so many steps are over of the process that it has
        held, or until that has ended: the one at which it began, and what comes of that."""
        return 0

    @property
    def holds_thread(self) -> bool:
        """Whether the thread that says where it is goes on only when this ends."""
        return False

    @property
    def holds_step(self) -> bool:
        """Whether the step before which it begins is taken only when this has ended."""
        return False

    @property
    def recurs(self) -> bool:
        """Whether it hits the same process each time that it comes to that moment again."""
        return False

    def recurs_at(self, step: str, phase: Phase) -> bool:
        """Whether this moment, of one that recurs, is the same once more, tried again."""
        return False

    @property
    def until_idle(self) -> bool:
        """Whether it ends when all others have done their work."""
        return False

    @property
    def until_still(self) -> bool:
        """Whether it ends before that, when nobody can go on without it."""
        return False

    @property
    def still_from(self) -> Point | None:
        """The moment before which that does not count; None for none."""
        return None

    def is_among(self, use: DiskUse) -> bool:
        """Whether the call to the disk that it hits is one of those made at its moment."""
        return True

    def crosses(self, link: str | None) -> bool:
        """Whether what travels on a link meets it while it lasts."""
        return False

    def worn_off(self, met: int) -> bool:
        """Whether it ends before a request meets it, as so many have."""
        return False

    def heals_for(self, node: str) -> bool:
        """Whether it ends before a node is started that follows one which it has hit."""
        return False

    def lasts(self, met: int) -> bool:
        """Whether it has fired although it is in force when the run ends."""
        return False

    def check(self, topology: Topology) -> None:  # noqa: B027 - most have nothing to refuse
        """Raise ScheduleError for what nobody could inject, although each name exists."""

    # --- how it takes effect

    @abstractmethod
    def begin(self, run: RunActuator) -> Begun | None:
        """Put it in force at its moment; None when it hits nothing there."""

    def reported(self, event: TraceEvent, run: RunActuator) -> Begun | None:
        """A process says, while this is in force, what became of it; None when that is not of
        this fault."""
        return None

    def end(self, run: RunActuator, met: int, step_failed: bool) -> Ended:
        """End it.

        Args:
            met: how many requests have met it.
            step_failed: whether the step that it has hit has failed.
        """
        return Ended()

    # --- where a search tries it

    @classmethod
    def singles(cls, event: TraceEvent, topology: Topology, occurrence: int) -> Iterable[Fault]:
        """Every fault of this kind at a step that a run has begun with this event."""
        return ()

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Fault]:
        """The faults of this kind that take one premise of a step away."""
        return ()

    @property
    def leaves_step(self) -> bool:
        """Whether the step can end well although this has hit it."""
        return False

    def moved(self, point: Point) -> Fault | None:
        """The same fault at another moment; None for one that spans two."""
        return None
