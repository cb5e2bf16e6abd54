"""The failure specification of a round-based program: which faults there are, and when.

Rounds are 1 … EOT. What a node sends in round t arrives in round t+1. See the paper (Alvaro,
Rosen, Hellerstein, *Lineage-driven Fault Injection*, SIGMOD 2015, section 2.2) for EOT, EFF and
the number of crashes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from typing import Literal

from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CRASH, DELAY, DUPLICATE, LOSS, Bounds, Fault, FaultSet
from bettong.lineage.nearest import did_you_mean

CrashModel = Literal["send-stop", "full-stop", "restart"]
CRASH_MODELS: tuple[CrashModel, ...] = ("send-stop", "full-stop", "restart")

Link = tuple[str, str]
_NAME = re.compile(r"(?:(?!->)[^\s(),])+")


def omission(sender: str, receiver: str, time: int) -> Fault:
    """Everything that the sender sends the receiver in this round is lost."""
    return Fault(f"O({sender},{receiver},{time})", LOSS, "", f"{sender}->{receiver}", time)


def crash(node: str, time: int) -> Fault:
    """The node crashes at the start of this round."""
    return Fault(f"C({node},{time})", CRASH, f"crash {node}", node, time)


def duplication(sender: str, receiver: str, time: int) -> Fault:
    """Everything sent in this round arrives in the next round and once more in the one after."""
    return Fault(f"D({sender},{receiver},{time})", DUPLICATE, "", f"{sender}->{receiver}", time)


def delay(sender: str, receiver: str, time: int) -> Fault:
    """Everything sent in this round arrives one round late."""
    return Fault(f"L({sender},{receiver},{time})", DELAY, "", f"{sender}->{receiver}", time)


@dataclass(frozen=True, slots=True)
class RoundFaults:
    """What a schedule means for one round.

    Attributes:
        lost: links on which nothing sent in this round arrives.
        stopped: nodes that do nothing in this round: they receive nothing (what would arrive is
            lost), send nothing, and their facts stay as they were.
        restarted: nodes that begin this round with their durable facts only: those that crash in
            it and will come back.
        duplicated: links on which what is sent arrives in each of the next two rounds.
        delayed: links on which what is sent arrives two rounds later instead of one.
    """

    lost: frozenset[Link] = frozenset()
    stopped: frozenset[str] = frozenset()
    restarted: frozenset[str] = frozenset()
    duplicated: frozenset[Link] = frozenset()
    delayed: frozenset[Link] = frozenset()


@dataclass(frozen=True)
class FailureSpec:
    """Nodes, rounds and bounds.

    Attributes:
        nodes: names of the nodes, in order.
        eot: the last round; the outcome is judged in it.
        eff: ("end of finite failures") messages sent in rounds below it may be lost.
        crashes: at most so many nodes crash, each at most once, in rounds 1 … EOT-1.
        crash_model: ``send-stop``: a crashed node sends nothing any more, but still receives and
            computes; ``full-stop``: it does nothing any more and its facts stay as they were;
            ``restart``: it is down for ``down_for`` rounds, then goes on with its durable facts.
        down_for: rounds that a restarting node is down.
        duplicates: at most so many duplications (below EFF).
        delays: at most so many delays (below EFF).

    Raises UsageError when the numbers make no sense.
    """

    nodes: tuple[str, ...]
    eot: int
    eff: int = 0
    crashes: int = 0
    crash_model: CrashModel = "send-stop"
    down_for: int = 1
    duplicates: int = 0
    delays: int = 0

    def __post_init__(self) -> None:
        if self.crash_model not in CRASH_MODELS:
            hint = did_you_mean(str(self.crash_model), CRASH_MODELS, 0, repr)
            raise UsageError(f"no crash model {self.crash_model!r}; {hint}")
        if not self.nodes or len(set(self.nodes)) != len(self.nodes):
            raise UsageError(
                f"nodes must be named once each, not {', '.join(self.nodes) or 'none'}"
            )
        for name in self.nodes:
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"a node cannot be named {name!r}: faults are written with its name, as in "
                    "C(a,2), so that it holds no blank, comma, bracket or arrow"
                )
        if self.eot < 1:
            raise UsageError(f"EOT must be at least 1 round, not {self.eot}")
        if not 0 <= self.eff <= self.eot:
            raise UsageError(f"EFF must lie between 0 and EOT={self.eot}, not at {self.eff}")
        if not 0 <= self.crashes <= len(self.nodes):
            raise UsageError(
                f"crashes must lie between 0 and the {len(self.nodes)} nodes, not at {self.crashes}"
            )
        if self.down_for < 1 or self.duplicates < 0 or self.delays < 0:
            raise UsageError("down-for must be at least 1; duplicates and delays at least 0")

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Every directed link between two nodes."""
        return tuple((a, b) for a in self.nodes for b in self.nodes if a != b)

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds in the search's terms."""
        return Bounds({CRASH: self.crashes, DUPLICATE: self.duplicates, DELAY: self.delays})

    @cached_property
    def faults(self) -> dict[str, Fault]:
        """Every fault of the specification by its id, in order of time, losses first."""
        found: list[Fault] = []
        for t in range(1, self.eot):
            if t < self.eff:
                found += [omission(a, b, t) for a, b in self.links]
                if self.duplicates:
                    found += [duplication(a, b, t) for a, b in self.links]
                if self.delays:
                    found += [delay(a, b, t) for a, b in self.links]
            if self.crashes:
                found += [crash(n, t) for n in self.nodes]
        return {f.id: f for f in found}

    def size(self) -> int:
        """How many schedules the bounds allow, the clean one included."""
        slots = len(self.links) * max(0, min(self.eff, self.eot) - 1)
        # crash times of different nodes are independent
        crashing = sum(
            math.comb(len(self.nodes), k) * (self.eot - 1) ** k for k in range(self.crashes + 1)
        )
        duplicated = sum(math.comb(slots, k) for k in range(min(self.duplicates, slots) + 1))
        delayed = sum(math.comb(slots, k) for k in range(min(self.delays, slots) + 1))
        return int(2**slots * crashing * duplicated * delayed)

    def schedules(self) -> Iterator[FaultSet]:
        """Every schedule that the bounds allow, the clean one first."""
        kinds: dict[str, list[Fault]] = {LOSS: [], CRASH: [], DUPLICATE: [], DELAY: []}
        for fault in self.faults.values():
            kinds[fault.kind].append(fault)

        def subsets(faults: Sequence[Fault], most: int) -> list[tuple[str, ...]]:
            chosen = chain.from_iterable(combinations(faults, k) for k in range(most + 1))
            return [
                tuple(f.id for f in some)
                for some in chosen
                if len({f.group for f in some if f.group}) == sum(1 for f in some if f.group)
            ]

        crashes = subsets(kinds[CRASH], self.crashes)
        duplicates = subsets(kinds[DUPLICATE], min(self.duplicates, len(kinds[DUPLICATE])))
        delays = subsets(kinds[DELAY], min(self.delays, len(kinds[DELAY])))
        for size in range(len(kinds[LOSS]) + 1):
            for losses in combinations([f.id for f in kinds[LOSS]], size):
                for parts in product(crashes, duplicates, delays):
                    yield frozenset(chain(losses, *parts))

    def check(self, schedule: FaultSet) -> None:
        """Raise UsageError when the schedule is not one of this specification."""
        for id in sorted(schedule):
            if id not in self.faults:
                hint = did_you_mean(id, self.faults)
                raise UsageError(f"no fault {id} within these bounds{hint and '; '}{hint}")
        if not self.bounds.allow(self.faults[id] for id in schedule):
            raise UsageError(f"{', '.join(sorted(schedule))}: more than {self.bounds.words()}")

    def crash_times(self, schedule: FaultSet) -> dict[str, int]:
        """For each node that crashes, the round in which it does."""
        return {f.place: f.time for f in (self.faults[id] for id in schedule) if f.kind == CRASH}

    def rounds(self, schedule: FaultSet) -> tuple[RoundFaults, ...]:
        """What the schedule means for each round: item ``t - 1`` is round t."""
        down = self.crash_times(schedule)
        by_kind: dict[tuple[str, int], set[Link]] = {}
        for fault in (self.faults[id] for id in schedule):
            if fault.kind != CRASH:
                a, b = fault.place.split("->")
                by_kind.setdefault((fault.kind, fault.time), set()).add((a, b))
        found = []
        for t in range(1, self.eot + 1):
            lost = set(by_kind.get((LOSS, t), ()))
            stopped: frozenset[str] = frozenset()
            restarted: frozenset[str] = frozenset()
            if self.crash_model == "send-stop":
                lost |= {(a, b) for a, b in self.links if down.get(a, self.eot + 1) <= t}
            elif self.crash_model == "full-stop":
                stopped = frozenset(n for n, at in down.items() if at <= t)
            else:
                stopped = frozenset(n for n, at in down.items() if at <= t < at + self.down_for)
                restarted = frozenset(n for n, at in down.items() if at == t)
            found.append(
                RoundFaults(
                    frozenset(lost),
                    stopped,
                    restarted,
                    frozenset(by_kind.get((DUPLICATE, t), ())),
                    frozenset(by_kind.get((DELAY, t), ())),
                )
            )
        return tuple(found)

    def _crashes(self, node: str, first: int, last: int) -> list[Fault]:
        if not self.crashes:
            return []
        return [crash(node, t) for t in range(max(1, first), min(last, self.eot - 1) + 1)]

    def losing(
        self, sender: str, receiver: str, time: int, arrival: int | None = None
    ) -> list[Fault]:
        """Faults, any of which keeps what is sent in round ``time`` from arriving.

        ``arrival`` is the round of arrival, ``time + 1`` unless said otherwise; an arrival that
        a delay or duplication brought about is distinguished from the ordinary one.
        """
        arrival = time + 1 if arrival is None else arrival
        if sender == receiver:
            return self.stopping(receiver, arrival)
        found = []
        if time < self.eff:
            found.append(omission(sender, receiver, time))
            if self.delays and arrival == time + 1:
                found.append(delay(sender, receiver, time))
        if self.crash_model == "send-stop":
            found += self._crashes(sender, 1, time)
        else:
            found += self.stopping(sender, time) + self.stopping(receiver, arrival)
        return found

    def stopping(self, node: str, time: int) -> list[Fault]:
        """Faults, any of which keeps the node from computing in this round."""
        if self.crash_model == "send-stop":
            return []
        if self.crash_model == "full-stop":
            return self._crashes(node, 1, time)
        return self._crashes(node, time - self.down_for + 1, time)

    def forgetting(self, node: str, time: int) -> list[Fault]:
        """Faults, any of which takes the node's volatile facts at the start of a round."""
        if self.crash_model != "restart":
            return []
        return self._crashes(node, time, time)

    def crashing(self, node: str) -> list[Fault]:
        """Faults, any of which makes the node one that has crashed."""
        return self._crashes(node, 1, self.eot - 1)

    def words(self) -> str:
        """The specification in words, for verdicts."""
        parts = [
            f"rounds 1 to {self.eot}",
            f"losses in rounds below {self.eff}" if self.eff > 1 else "no losses",
            f"at most {self.crashes} crash{'' if self.crashes == 1 else 'es'} ({self.crash_model})",
        ]
        if self.duplicates:
            parts.append(f"at most {self.duplicates} duplicated deliveries")
        if self.delays:
            parts.append(f"at most {self.delays} delayed deliveries")
        return ", ".join(parts)
