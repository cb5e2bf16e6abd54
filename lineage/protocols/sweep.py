"""The completing phase: all worlds that schedules within the bounds can lead to, round by round.

Schedules that lead to the same world at the same round have the same future, so that a world is
followed only once, with the smallest fault sets that lead to it. Where negation keeps the lineage
of good runs from ruling everything out, this does, whenever there are not too many worlds. It
uses neither lineage nor solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from time import monotonic
from typing import Any

from bettong.lineage.faults import FaultSet
from bettong.lineage.protocols.executor import RoundExecutor, judge
from bettong.lineage.protocols.failure_spec import Link, RoundFaults, crash, omission
from bettong.lineage.protocols.rounds import World

MOST_LINKS = 10
MOST_SETS = 256


@dataclass(slots=True)
class Sweep:
    """What a sweep found.

    Attributes:
        complete: every world was followed; else there were too many, and nothing is concluded.
        minimal: the minimal violating schedules, when complete.
        worlds: distinct worlds, over all rounds.
        seconds: wall time.
    """

    complete: bool = False
    minimal: list[FaultSet] = field(default_factory=list)
    worlds: int = 0
    seconds: float = 0.0


class _TooManyError(Exception):
    pass


def minimal_masks(masks: Iterable[int]) -> list[int]:
    """Bit sets of which no other one is a subset."""
    found: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(known & mask == known for known in found):
            found.append(mask)
    return found


def sweep(executor: RoundExecutor, *, worlds: int = 50_000, seconds: float = 20.0) -> Sweep:
    """Follow all worlds of the executor's specification, up to so many and for so long.

    Needs a program that names the links that a world is about to use (``links``), crash model
    send-stop or full-stop, and no duplicates or delays; otherwise the sweep is not complete.
    """
    found = Sweep()
    began = monotonic()
    spec = executor.spec
    known = hasattr(executor.program, "links")
    if known and spec.crash_model != "restart" and not (spec.duplicates or spec.delays):
        try:
            found.minimal = _Follow(executor, worlds, began + seconds, found).violations()
            found.complete = True
        except _TooManyError:
            found.minimal = []
    found.seconds = monotonic() - began
    return found


class _Follow:
    def __init__(self, executor: RoundExecutor, most: int, end: float, found: Sweep) -> None:
        self._program: Any = executor.program
        self._spec = executor.spec
        self._baseline = executor.baseline
        self._most = most
        self._end = end
        self._found = found
        self._bits = {id: 1 << n for n, id in enumerate(self._spec.faults)}

    def violations(self) -> list[FaultSet]:
        spec = self._spec
        now: dict[tuple[World, frozenset[str]], list[int]] = {
            (self._program.start(), frozenset()): [0]
        }
        for time in range(1, spec.eot):
            following: dict[tuple[World, frozenset[str]], list[int]] = {}
            for (world, crashed), masks in now.items():
                if monotonic() > self._end:
                    raise _TooManyError
                for key, steps in self._steps(world, crashed, time).items():
                    sets = following.setdefault(key, [])
                    sets += (mask | step for mask in masks for step in steps)
                    if len(sets) > 4 * MOST_SETS:
                        sets[:] = minimal_masks(sets)
            for key, sets in following.items():
                following[key] = minimal_masks(sets)
                if len(following[key]) > MOST_SETS:
                    raise _TooManyError
            self._found.worlds += len(following)
            if self._found.worlds > self._most:
                raise _TooManyError
            now = following
        violating = [
            mask
            for (world, crashed), masks in now.items()
            if self._outcome(world, crashed) == "violation"
            for mask in masks
        ]
        names = {bit: id for id, bit in self._bits.items()}
        return [
            frozenset(names[bit] for bit in names if mask & bit)
            for mask in minimal_masks(violating)
        ]

    def _faults(self, crashed: frozenset[str], lost: Iterable[Link]) -> RoundFaults:
        if self._spec.crash_model == "full-stop":
            return RoundFaults(frozenset(lost), crashed)
        silent = {link for link in self._spec.links if link[0] in crashed}
        return RoundFaults(frozenset(lost) | silent)

    def _outcome(self, world: World, crashed: frozenset[str]) -> str:
        faults = self._faults(crashed, ())
        judged = self._program.judge(world, self._spec.eot, faults, crashed)
        return judge(self._baseline, judged)[0]

    def _steps(
        self, world: World, crashed: frozenset[str], time: int
    ) -> dict[tuple[World, frozenset[str]], list[int]]:
        """What may come of a world: for each following one the minimal faults of this round."""
        spec = self._spec
        found: dict[tuple[World, frozenset[str]], list[int]] = {}
        for now_crashed, crashes in self._crashing(crashed, time):
            base = self._faults(now_crashed, ())
            used = [
                link
                for link in self._program.links(world, time, base)
                if link not in base.lost and time < spec.eff
            ]
            if len(used) > MOST_LINKS:
                raise _TooManyError
            for size in range(len(used) + 1):
                for lost in combinations(used, size):
                    after = self._program.step(world, time, self._faults(now_crashed, lost))
                    mask = crashes
                    for a, b in lost:
                        mask |= self._bits[omission(a, b, time).id]
                    sets = found.setdefault((after, now_crashed), [])
                    if not any(known & mask == known for known in sets):
                        sets.append(mask)
        return found

    def _crashing(self, crashed: frozenset[str], time: int) -> Iterator[tuple[frozenset[str], int]]:
        alive = [n for n in self._spec.nodes if n not in crashed]
        for size in range(self._spec.crashes - len(crashed) + 1):
            for some in combinations(alive, size):
                yield crashed | frozenset(some), sum(self._bits[crash(n, time).id] for n in some)
