"""How many runs it takes to find each mutant: by its lineage, by random faults, and by every
single fault at each step of a batch.

A mutant is one honest mistake in a right system (:mod:`bettong.scenarios.mutants.shipped`). Runs
are counted from the clean one to the first violation, on the in-process runner where the mistake
can be shown there, else on Spark. The lineage is followed as ``bettong run --faults ldfi`` does it,
within the standard bounds; the other two look for crashes and losses alone, and where the mutant's
own schedule has a fault of another kind, for that kind too. What is not found within the runs
allowed is no figure.

``python -m bettong.scenarios.benchmarks.shipped_mutants [MUTANT...]`` prints the docs' table, a row
as soon as it is measured; all mutants take about an hour of a machine that does nothing else.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import SearchBounds, bounds_of
from bettong.harness.search.enumeration import each_step, random_schedules
from bettong.harness.search.fault_plan import EACH_STEP_BATCHES
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.faults import CRASH, DUPLICATE, LOSS, PARTITION, PAUSE, STORAGE
from bettong.lineage.nearest import one_of
from bettong.lineage.results import Anomaly, environment
from bettong.lineage.search.loop import Budget
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.mutants.shipped import MUTANTS, SPARK_ONLY

MOST = 120
LED = 400
"""As many as :data:`MOST`, by lineage."""
SEEDS = 3
LIMITS = Limits(idle_s=15.0)
FEW = ("gateway_acks_early", "sink_commits_again", "reader_resumes_late")


@dataclass(frozen=True, slots=True)
class Found:
    """What it took to find one mutant: runs, None where it was not found.

    Attributes:
        fault: the smallest fault set that the lineage led to, or that ships with the mutant.
        anomalies: what a reader saw of it.
        at_random: runs for each seed.
    """

    mutant: Scenario
    fault: tuple[str, ...]
    anomalies: tuple[str, ...]
    lineage: int | None
    at_random: tuple[int | None, ...]
    each_step: int | None

    @property
    def random_mean(self) -> float | None:
        """Runs at random on average, when every seed has found it."""
        runs = [n for n in self.at_random if n is not None]
        return round(mean(runs), 1) if len(runs) == len(self.at_random) else None


def bench(full: bool = False) -> dict[str, object]:
    """Figures of a few mutants, or of all of them; raises WrongResultError when a mutant's own
    schedule does not show it."""
    chosen = [mutant for mutant in MUTANTS if full or mutant.name in FEW]
    figures: dict[str, dict[str, object]] = {}
    for found in measure(chosen):
        beside = found.random_mean
        if found.lineage is not None:
            versus = {} if beside is None else _versus("random", beside, found.lineage)
            figures[f"lineage, {found.mutant.name}"] = {
                "value": found.lineage,
                "unit": "runs",
                **versus,
            }
        if found.each_step is not None:
            figures[f"each step, {found.mutant.name}"] = {"value": found.each_step, "unit": "runs"}
    return {"name": "mutants", "figures": figures, "environment": environment()}


def measure(mutants: Iterable[Scenario], most: int = MOST) -> Iterator[Found]:
    """One after the other; mutants that share a runner share a backend."""
    ordered = sorted(mutants, key=lambda mutant: mutant.name in SPARK_ONLY)
    for on_spark, group in groupby(ordered, key=lambda mutant: mutant.name in SPARK_ONLY):
        with LocalBackend(runner="spark" if on_spark else "in-process") as backend:
            for mutant in group:
                yield _measured(backend, mutant, most)


def _measured(backend: LocalBackend, mutant: Scenario, most: int) -> Found:
    with tempfile.TemporaryDirectory(prefix="bettong-bench-") as name:

        def campaign(part: str) -> Campaign:
            found = Campaign(backend, mutant, Path(name) / part, mutant.messages(), limits=LIMITS)
            found.replay = False
            return found

        shown = campaign("shown").run(mutant.shown_by())
        if shown.outcome != "violation":
            raise WrongResultError(f"{mutant.name}: its own schedule ends {shown.outcome}")
        kinds = frozenset(reach_for(mutant).bounds.at_most)
        led = search_scenario(campaign("lineage"), bounds_for(mutant), budget=Budget(runs=LED))
        clean = campaign("clean").run(Schedule()).events
        topology = backend.topology(mutant)
        seeds = [
            random_schedules(clean, most - 1, seed, topology, kinds=kinds) for seed in range(SEEDS)
        ]
        example = led.counterexamples[0] if led.counterexamples else None
        anomalies = example.anomalies if example else shown.anomalies
        return Found(
            mutant,
            example.faults if example else mutant.shown_by().ids,
            _kinds(anomalies),
            led.coverage.to_first,
            tuple(_until(campaign(f"seed-{i}").run, drawn) for i, drawn in enumerate(seeds)),
            _until(campaign("each").run, each_step(clean, EACH_STEP_BATCHES, topology, kinds)),
        )


def bounds_for(mutant: Scenario) -> SearchBounds:
    """The standard bounds, or where its own schedule has more faults than these, those that it
    needs."""
    standard = bounds_of()
    counts = Counter(fault.bound for fault in mutant.shown_by().faults)
    within = all(n <= standard.bounds.at_most.get(kind, 0) for kind, n in counts.items())
    return standard if within else reach_for(mutant)


def reach_for(mutant: Scenario) -> SearchBounds:
    """A crash and a loss, and what the mutant's own schedule has."""
    counts = Counter(fault.bound for fault in mutant.shown_by().faults)
    return SearchBounds(
        crashes=max(1, counts[CRASH]),
        losses=max(1, counts[LOSS]),
        pauses=counts[PAUSE],
        storage=counts[STORAGE],
        duplicates=counts[DUPLICATE],
        partitions=counts[PARTITION],
    )


def _kinds(anomalies: Iterable[Anomaly]) -> tuple[str, ...]:
    return tuple(sorted({anomaly.kind for anomaly in anomalies}))


def _until(run: Callable[[Schedule], RunRecord], schedules: Sequence[Schedule]) -> int | None:
    """Runs until the first violation, the clean run included."""
    for number, schedule in enumerate(schedules, 2):
        if run(schedule).outcome == "violation":
            return number
    return None


def _versus(whose: str, beside: float, value: float) -> dict[str, object]:
    return {"versus": f"{whose}: {beside:g}", "ratio": round(value / beside, 3)}


HEAD = """| mutant | mistake | smallest fault | a reader sees | lineage | random | each step |
| --- | --- | --- | --- | ---: | ---: | ---: |"""


def line(found: Found) -> str:
    """A row of the docs' table, below :data:`HEAD`."""
    fault = " and ".join(f"`{fault}`" for fault in found.fault).replace("|", "\\|")
    runs = (found.lineage, found.random_mean, found.each_step)
    reported = " | ".join("not" if n is None else f"{n:g}" for n in runs)
    mutant = found.mutant
    anomalies = ", ".join(found.anomalies)
    return f"| `{mutant.name}` | {mutant.title} | {fault} | {anomalies} | {reported} |"


def main(names: Sequence[str]) -> None:
    """Print the table of the named mutants, or of all of them."""
    for name in names:
        one_of(name, [mutant.name for mutant in MUTANTS], "mutant")
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    print(f"Runs to the first violation, {MOST} at most.\n\n{HEAD}")
    for found in measure(chosen):
        print(line(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
