"""Random schedules: the baseline that the search is compared with."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from bettong.lineage.faults import CRASH, DELAY, DUPLICATE, LOSS, FaultSet
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.search.events import Executed, Handler, ignore
from bettong.lineage.search.executor import Execution


def random_schedule(spec: FailureSpec, rng: random.Random) -> FaultSet:
    """One schedule within the bounds: a random number of crashes, each link and round lossy with
    a probability that is drawn first, a random number of duplications and delays."""
    kinds: dict[str, list[str]] = {LOSS: [], CRASH: [], DUPLICATE: [], DELAY: []}
    for fault in spec.faults.values():
        kinds[fault.kind].append(fault.id)
    probability = rng.random()
    chosen = {id for id in kinds[LOSS] if rng.random() < probability}
    for node in rng.sample(spec.nodes, rng.randint(0, spec.crashes)):
        times = [i for i in kinds[CRASH] if spec.faults[i].place == node]
        chosen.update(rng.sample(times, min(1, len(times))))
    for kind, most in ((DUPLICATE, spec.duplicates), (DELAY, spec.delays)):
        chosen.update(rng.sample(kinds[kind], rng.randint(0, min(most, len(kinds[kind])))))
    return frozenset(chosen)


@dataclass(slots=True)
class Sample:
    """What random schedules found.

    Attributes:
        executions: every run, the clean one first.
        to_first: how many it took to see the first violation, or None.
        minimal: that violation with every fault left out that is not needed.
    """

    executions: list[Execution] = field(default_factory=list)
    to_first: int | None = None
    minimal: FaultSet | None = None


def sample(
    executor: RoundExecutor,
    count: int,
    seed: int = 0,
    *,
    on_event: Handler = ignore,
    first_only: bool = False,
) -> Sample:
    """Run the clean schedule and then ``count`` random ones; shrink the first violation."""
    rng = random.Random(seed)
    found = Sample()
    for number in range(count + 1):
        schedule = random_schedule(executor.spec, rng) if number else frozenset()
        execution = executor.judge(schedule)
        found.executions.append(execution)
        on_event(Executed(execution, number + 1))
        if execution.outcome == "violation" and found.to_first is None:
            found.to_first = number + 1
            found.minimal = shrink(executor, schedule)
            if first_only:
                break
        if not number and execution.outcome != "good":
            break
    return found


def shrink(executor: RoundExecutor, schedule: FaultSet) -> FaultSet:
    """A violating subset from which no single fault can be left out (delta debugging with steps
    of one: Zeller and Hildebrandt 2002)."""
    current = set(schedule)
    again = True
    while again:
        again = False
        for fault in sorted(current):
            if executor.outcome(frozenset(current - {fault})) == "violation":
                current.discard(fault)
                again = True
    return frozenset(current)
