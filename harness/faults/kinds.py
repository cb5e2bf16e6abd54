"""Faults, placed in logical time: which step, before or after, the how-manieth time it is taken.

Every fault is a frozen value with a stable ``id``; how it is put in force is told by
:mod:`bettong.harness.conductor.server`.
"""

from __future__ import annotations

import errno as errno_codes
from dataclasses import dataclass
from typing import Literal

DRIVER = "driver"

PointPhase = Literal["before", "after"]
Direction = Literal["both", "forward", "backward"]


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A moment of a run: just before or just after a step's n-th occurrence.

    Written ``before batch=1/sink.commit``, ``after batch=1/commits#2``; "before" may be left out.
    """

    step: str
    phase: PointPhase = "before"
    occurrence: int = 1

    @property
    def place(self) -> str:
        """The step with its occurrence when that is not the first."""
        return self.step if self.occurrence == 1 else f"{self.step}#{self.occurrence}"

    def __str__(self) -> str:
        return f"{self.phase} {self.place}"


@dataclass(frozen=True, slots=True)
class Crash:
    """SIGKILL of every process of a node; no clean-up code runs.

    Attributes:
        restart: whether the node comes back, with its durable state and nothing else.
    """

    node: str
    at: Point
    restart: bool = True

    @property
    def id(self) -> str:
        return f"crash({self.node}, {self.at}{'' if self.restart else ', for good'})"


@dataclass(frozen=True, slots=True)
class Omit:
    """The request of one step is lost on its link before it arrives."""

    link: str
    at: Point

    @property
    def id(self) -> str:
        return f"omit({self.link}, {self.at.place})"


@dataclass(frozen=True, slots=True)
class OmitReply:
    """The request of one step arrives and is carried out, but its reply is lost."""

    link: str
    at: Point

    @property
    def id(self) -> str:
        return f"omit-reply({self.link}, {self.at.place})"


@dataclass(frozen=True, slots=True)
class Delay:
    """The request of one step takes longer on its link, by ``latency_ms`` milliseconds."""

    link: str
    at: Point
    latency_ms: int

    @property
    def id(self) -> str:
        return f"delay({self.link}, {self.at.place}, {self.latency_ms} ms)"


@dataclass(frozen=True, slots=True)
class Throttle:
    """The request of one step crosses its link at ``rate_kb`` kilobytes a second."""

    link: str
    at: Point
    rate_kb: int

    @property
    def id(self) -> str:
        return f"throttle({self.link}, {self.at.place}, {self.rate_kb} kB/s)"


@dataclass(frozen=True, slots=True)
class Slice:
    """The request of one step arrives in pieces of about ``size`` bytes."""

    link: str
    at: Point
    size: int

    @property
    def id(self) -> str:
        return f"slice({self.link}, {self.at.place}, {self.size} bytes)"


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection of one step is reset (RST) when its request is on the way."""

    link: str
    at: Point

    @property
    def id(self) -> str:
        return f"reset({self.link}, {self.at.place})"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The request of one step is delivered twice: when it has been answered, a copy of it arrives
    on a connection of its own, and nobody waits for what the copy is answered."""

    link: str
    at: Point

    @property
    def id(self) -> str:
        return f"duplicate({self.link}, {self.at.place})"


@dataclass(frozen=True, slots=True)
class Cut:
    """A partition between two sets of nodes, from one moment until another.

    Attributes:
        left, right: the two sets; nodes within a set still reach each other.
        start, until: when it begins and when it heals; without ``until`` it lasts.
        tries: it heals when so many requests have met it and another one is about to.
        direction: ``forward`` loses only what left sends right, ``backward`` the opposite.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    start: Point
    until: Point | None = None
    direction: Direction = "both"
    tries: int | None = None

    def crosses(self, link: str | None) -> bool:
        """Whether what travels on a link has to cross it."""
        a, _, b = (link or "").partition("->")
        return (a in self.left and b in self.right) or (a in self.right and b in self.left)

    @property
    def id(self) -> str:
        arrow = {"both": "|", "forward": "->", "backward": "<-"}[self.direction]
        between = f"{'+'.join(self.left)}{arrow}{'+'.join(self.right)}"
        tries = "" if self.tries is None else f" for {self.tries} tries"
        return f"cut({between}, {_span(self.start, self.until)}{tries})"


@dataclass(frozen=True, slots=True)
class Pause:
    """SIGSTOP of every process of a node, then SIGCONT: what it held in flight goes on late.

    Attributes:
        until: when it goes on; None: when all others have done their work.
        replace: whether a supervisor takes the node for dead meanwhile and starts another one of
            its name; what goes on late is a zombie then.
    """

    node: str
    start: Point
    until: Point | None = None
    replace: bool = False

    @property
    def id(self) -> str:
        replaced = ", replaced" if self.replace else ""
        return f"pause({self.node}, {_span(self.start, self.until)}{replaced})"


@dataclass(frozen=True, slots=True)
class Storage:
    """The operating system refuses what a step writes, e.g. ``ENOSPC`` for a full disk; after
    the step: it was written, but the writer is told that it failed."""

    at: Point
    errno: str = "ENOSPC"

    @property
    def id(self) -> str:
        return f"storage({self.errno}, {self.at})"

    @property
    def code(self) -> int:
        """The error's number on this system."""
        return int(getattr(errno_codes, self.errno))


@dataclass(frozen=True, slots=True)
class PowerCut:
    """The power of a node is cut within a step, right before the step's n-th ``sync``: of the last
    write only half is kept, or a new name is lost. The node comes back."""

    node: str
    at: Point
    sync: int = 1

    @property
    def id(self) -> str:
        which = "" if self.sync == 1 else f", sync {self.sync}"
        return f"power-cut({self.node}, {self.at.place}{which})"


LinkFault = Omit | OmitReply | Duplicate | Delay | Throttle | Slice | Reset
Fault = Crash | Cut | Pause | Storage | PowerCut | LinkFault


def _span(start: Point, until: Point | None) -> str:
    def short(point: Point) -> str:
        return point.place if point.phase == "before" else str(point)

    return f"from {short(start)}" + ("" if until is None else f" until {short(until)}")


def points(fault: Fault) -> tuple[Point, ...]:
    """The moments that a fault names, the one at which it begins first."""
    if isinstance(fault, Cut | Pause):
        return (fault.start,) if fault.until is None else (fault.start, fault.until)
    return (fault.at,)


def repeats(link: str) -> bool:
    """Whether requests on a link can be delivered twice: those of the senders and the driver."""
    a, _, b = link.partition("->")
    return b in ("gateway", "receiver") and a.split("-")[0] in ("sender", "driver")
