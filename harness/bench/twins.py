"""How many runs it takes to find each broken twin: by its lineage, by random faults, and by every
single fault at each step of a batch.

A twin is one honest mistake in a right system (:mod:`bettong.scenarios.broken_twins`). Runs are
counted from the clean one to the first violation, on the in-process runner where the mistake can
be shown there, else on Spark. All three look for crashes and losses, and where the twin's own
schedule has a fault of another kind, for that kind too. What is not found within the runs allowed
is no figure.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import mean

from bettong.harness.backend import LocalBackend
from bettong.harness.bench.errors import WrongResultError
from bettong.harness.campaign import Campaign
from bettong.harness.execution import Limits, Observed
from bettong.harness.fault_plan import EACH_STEP_BATCHES
from bettong.harness.planning import each_step, random_schedules
from bettong.harness.scenario import Scenario
from bettong.harness.schedule import Schedule
from bettong.harness.search.ldfi import Reach, search_scenario
from bettong.harness.search.leaves import kind_of
from bettong.lineage.faults import CRASH, DUPLICATE, LOSS, PARTITION, PAUSE, STORAGE
from bettong.lineage.loop import Budget
from bettong.lineage.results import Anomaly, environment
from bettong.scenarios.broken_twins import SPARK_ONLY, TWINS

MOST = 120
SEEDS = 3
LIMITS = Limits(idle_s=15.0)
FEW = ("gateway_acks_early", "sink_commits_again", "reader_resumes_late")


@dataclass(frozen=True, slots=True)
class Found:
    """What it took to find one twin: runs, None where it was not found.

    Attributes:
        fault: the smallest fault set that the lineage led to, or that ships with the twin.
        anomalies: what a reader saw of it.
        at_random: runs for each seed.
    """

    twin: Scenario
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
    """Figures of a few twins, or of all of them; raises WrongResultError when a twin's own
    schedule does not show it."""
    chosen = [twin for twin in TWINS if full or twin.name in FEW]
    figures: dict[str, dict[str, object]] = {}
    for found in measure(chosen):
        beside = found.random_mean
        if found.lineage is not None:
            versus = {} if beside is None else _versus("random", beside, found.lineage)
            figures[f"lineage, {found.twin.name}"] = {
                "value": found.lineage,
                "unit": "runs",
                **versus,
            }
        if found.each_step is not None:
            figures[f"each step, {found.twin.name}"] = {"value": found.each_step, "unit": "runs"}
    return {"name": "twins", "figures": figures, "environment": environment()}


def measure(twins: Iterable[Scenario], most: int = MOST) -> Iterator[Found]:
    """One after the other; twins that share a runner share a backend."""
    ordered = sorted(twins, key=lambda twin: twin.name in SPARK_ONLY)
    for on_spark, group in groupby(ordered, key=lambda twin: twin.name in SPARK_ONLY):
        with LocalBackend(runner="spark" if on_spark else "in-process") as backend:
            for twin in group:
                yield _measured(backend, twin, most)


def _measured(backend: LocalBackend, twin: Scenario, most: int) -> Found:
    with tempfile.TemporaryDirectory(prefix="bettong-bench-") as name:

        def campaign(part: str) -> Campaign:
            found = Campaign(backend, twin, Path(name) / part, twin.messages(), limits=LIMITS)
            found.replay = False
            return found

        shown = campaign("shown").run(twin.shown_by())
        if shown.outcome != "violation":
            raise WrongResultError(f"{twin.name}: its own schedule ends {shown.outcome}")
        reach = reach_for(twin)
        kinds = frozenset(reach.bounds.at_most)
        led = search_scenario(campaign("lineage"), reach, budget=Budget(runs=most))
        clean = campaign("clean").run(Schedule()).events
        topology = backend.topology(twin)
        seeds = [
            random_schedules(clean, most - 1, seed, topology, kinds=kinds) for seed in range(SEEDS)
        ]
        example = led.counterexamples[0] if led.counterexamples else None
        anomalies = example.anomalies if example else shown.anomalies
        return Found(
            twin,
            example.faults if example else twin.shown_by().ids,
            _kinds(anomalies),
            led.coverage.to_first,
            tuple(_until(campaign(f"seed-{i}").run, drawn) for i, drawn in enumerate(seeds)),
            _until(campaign("each").run, each_step(clean, EACH_STEP_BATCHES, topology, kinds)),
        )


def reach_for(twin: Scenario) -> Reach:
    """The default bounds, widened by what the twin's own schedule has."""
    counts = Counter(kind_of(fault.id) for fault in twin.shown_by().faults)
    return Reach(
        crashes=max(1, counts[CRASH]),
        losses=max(1, counts[LOSS]),
        pauses=counts[PAUSE],
        storage=counts[STORAGE],
        duplicates=counts[DUPLICATE],
        partitions=counts[PARTITION],
    )


def _kinds(anomalies: Iterable[Anomaly]) -> tuple[str, ...]:
    return tuple(sorted({anomaly.kind for anomaly in anomalies}))


def _until(run: Callable[[Schedule], Observed], schedules: Sequence[Schedule]) -> int | None:
    """Runs until the first violation, the clean run included."""
    for number, schedule in enumerate(schedules, 2):
        if run(schedule).outcome == "violation":
            return number
    return None


def _versus(whose: str, beside: float, value: float) -> dict[str, object]:
    return {"versus": f"{whose}: {beside:g}", "ratio": round(value / beside, 3)}


HEAD = """| twin | mistake | smallest fault | a reader sees | lineage | random | each step |
| --- | --- | --- | --- | ---: | ---: | ---: |"""


def line(found: Found) -> str:
    """A row of the docs' table, below :data:`HEAD`."""
    fault = " and ".join(f"`{fault}`" for fault in found.fault).replace("|", "\\|")
    runs = (found.lineage, found.random_mean, found.each_step)
    told = " | ".join("not" if n is None else f"{n:g}" for n in runs)
    twin = found.twin
    return f"| `{twin.name}` | {twin.title} | {fault} | {', '.join(found.anomalies)} | {told} |"
