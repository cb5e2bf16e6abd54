"""How long a verdict takes on sinks as people write them: ``scenarios/sinks/realistic.py``.

For each: seconds until the first counterexample is confirmed, seconds and runs of the whole
verdict beside the same made one run at a time, and the share of it that was waiting. Warm: Spark is
there before the clock is. Beside them how many of the two verdicts were the sink's own level, and
whether they told the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psutil

from bettong.harness.events import Event, RunJudged, ViolationConfirmed, ignore
from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result, environment
from bettong.scenarios.sinks.realistic import REALISTIC, Published


@dataclass
class _Watch:
    """Takes the time of what happens in one check."""

    began: float = field(default_factory=time.perf_counter)
    busy: float = field(default_factory=lambda: _cpu_seconds())
    first: float | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, ViolationConfirmed) and self.first is None:
            self.first = time.perf_counter() - self.began
        if isinstance(event, RunJudged):
            self.busy = max(self.busy, _cpu_seconds())


def bench(only: str | None = None) -> dict[str, Any]:
    """The figures of all sinks, or of the one that is named. Raises UsageError for a name that none
    has."""
    chosen = [sink for sink in REALISTIC if only in (None, sink.__name__)]
    if not chosen:
        known = ", ".join(sink.__name__ for sink in REALISTIC)
        raise UsageError(f"--only {only}: no realistic sink is called that; there are: {known}")
    figures: dict[str, Any] = {}
    with spark_environments(ignore) as environments:
        for sink in chosen:
            for name, figure in _figures(environments, sink):
                figures[f"{sink.__name__}, {name}"] = figure
    return {"name": "sinks", "figures": figures, "environment": environment()}


def _figures(
    environments: SparkEnvironments, sink: type[Published]
) -> Iterator[tuple[str, dict[str, Any]]]:
    target = f"{sink.__module__}:{sink.__name__}"
    alone = check_one(Request(target, side_by_side=False), environments)
    watch = _Watch()
    before, begun = watch.busy, time.perf_counter()
    result = check_one(Request(target), environments, watch)
    seconds = time.perf_counter() - begun
    right = [r.guarantee == sink.level and r.verdict != "unknown" for r in (alone, result)]
    yield "right", {"value": sum(right), "unit": "of 2"}
    yield "same answer side by side", {"value": int(_told(alone) == _told(result)), "unit": "of 1"}
    yield (
        "verdict",
        {
            "value": round(result.duration_s, 1),
            "unit": "s",
            "versus": "one run at a time",
            "ratio": round(result.duration_s / alone.duration_s, 2),
        },
    )
    yield "runs", {"value": result.coverage.executions, "unit": "runs"}
    waiting = 1 - (watch.busy - before) / (seconds * (os.cpu_count() or 1))
    yield "waiting", {"value": round(max(0.0, waiting), 2), "unit": "share"}
    if watch.first is not None:
        yield "first counterexample", {"value": round(watch.first, 1), "unit": "s"}


def _told(result: Result) -> object:
    return result.verdict, result.guarantee, [(c.faults, c.words) for c in result.counterexamples]


def _cpu_seconds() -> float:
    """Of this process and all that it has started and that still runs."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
