"""Nodes are cut off from each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from bettong.harness.faults.actuator import Direction, LinkActuator, RunActuator
from bettong.harness.faults.entry import Entry, shown
from bettong.harness.faults.fault import Begun, Ended, Fault, Premise, TakenStep, TakenSteps
from bettong.harness.faults.point import DRIVER, Point, span
from bettong.harness.faults.wording import moment
from bettong.lineage.faults import PARTITION

_ARROWS = {"both": "|", "forward": "->", "backward": "<-"}
_TRIES = 2
"""A search loses the second try too, where an omission loses one."""


@dataclass(frozen=True, slots=True)
class Cut(Fault):
    """A partition between two sets of nodes, from one moment until another.

    Attributes:
        left, right: the two sets; nodes within a set still reach each other.
        start, until: when it begins and when it heals; without ``until`` it lasts.
        tries: it heals when so many requests have met it and another one is about to. ``all``: it
            outlasts the patience of a driver, which has none then, and heals when the step has
            failed.
        direction: ``forward`` loses only what left sends right, ``backward`` the opposite.
    """

    kind: ClassVar[str] = "cut"
    bound: ClassVar[str] = PARTITION
    needed: ClassVar[tuple[str, ...]] = ("between", "from")
    optional: ClassVar[tuple[str, ...]] = ("until", "direction", "tries")
    premises: ClassVar[tuple[Premise, ...]] = ("arrives",)

    left: tuple[str, ...]
    right: tuple[str, ...]
    start: Point
    until: Point | None = None
    direction: Direction = "both"
    tries: int | Literal["all"] | None = None

    @property
    def id(self) -> str:
        between = f"{'+'.join(self.left)}{_ARROWS[self.direction]}{'+'.join(self.right)}"
        tries = "" if self.tries is None else f" for {self.tries} tries"
        return f"cut({between}, {span(self.start, self.until)}{tries})"

    @classmethod
    def parse(cls, entry: Entry) -> Cut:
        between = entry.value("between")
        if not isinstance(between, list) or len(between) != 2:
            raise entry.error(
                f"between: expected two lists of nodes such as [[w1], [w2]], got {shown(between)}"
            )
        left, right = (entry.names("between", side) for side in between)
        if both := set(left) & set(right):
            raise entry.error(f"between: {min(both)} is on both sides")
        direction = cast(Direction, entry.one_of("direction", tuple(_ARROWS), "both"))
        start = entry.point("from")
        until = entry.end("until", start)
        tries = entry.count_or_all("tries") if "tries" in entry else None
        if until is not None and tries is not None:
            raise entry.error("give one of until and tries")
        return cls(left, right, start, until, direction, tries)

    def to_dict(self) -> dict[str, Any]:
        until = {} if self.until is None else {"until": self.until.short}
        tries = {} if self.tries is None else {"tries": self.tries}
        between = [list(self.left), list(self.right)]
        span = {"from": self.start.short, **until}
        return {"between": between, **span, "direction": self.direction, **tries}

    def describe(self) -> str:
        tries = f" for {self.tries} tries" if self.tries else ""
        last = f" until {moment(self.until)}" if self.until else tries
        apart = f"{' and '.join(self.left)} could not reach {' and '.join(self.right)}"
        return f"{apart} from {moment(self.start)}{last}"

    @property
    def points(self) -> tuple[Point, ...]:
        return (self.start,) if self.until is None else (self.start, self.until)

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.left, *self.right)

    def crosses(self, link: str | None) -> bool:
        a, _, b = (link or "").partition("->")
        return (a in self.left and b in self.right) or (a in self.right and b in self.left)

    def worn_off(self, met: int) -> bool:
        return isinstance(self.tries, int) and met >= self.tries

    def heals_for(self, node: str) -> bool:
        """A driver asks what there is before it takes a step: such a request is no try, and would
        be lost for good."""
        return isinstance(self.tries, int) and node == DRIVER and node in self.nodes

    def lasts(self, met: int) -> bool:
        return self.until is None and (self.tries is None or met > 0)

    def arm(self, links: LinkActuator) -> str:
        """Put it in force; the evidence."""
        return links.partition(self.id, self.left, self.right, self.direction)

    @property
    def parts_for_good(self) -> bool:
        return self.tries is None

    @property
    def ends_patience(self) -> bool:
        return self.tries == "all"

    def begin(self, run: RunActuator) -> Begun:
        return Begun(self.arm(run))

    def end(self, run: RunActuator, met: int, step_failed: bool) -> Ended:
        counted = [f"{met} requests met it"] if self.tries is not None else []
        evidence = [*counted, run.heal(self.id, step_failed=True).evidence]
        return Ended(evidence, fired=met > 0 or not self.ends_patience)

    @classmethod
    def leaves(cls, premise: Premise, step: TakenStep, run: TakenSteps) -> Iterable[Cut]:
        for left, right, start in run.apart(step):
            yield cls(left, right, start, tries=_TRIES)
            if right == (DRIVER,):
                yield cls(left, right, start, tries="all")
