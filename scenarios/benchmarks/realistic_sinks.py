"""How long a verdict takes on sinks as people write them: ``scenarios/sinks/realistic.py``.

For each: seconds until the first counterexample is confirmed, seconds and runs of the whole
verdict beside the same made one run at a time, and the share of it that was waiting. Warm: Spark is
there before the clock is. A level that is not the sink's own makes the measurement fail.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

import psutil

from bettong.harness.events import Event, RunJudged, ViolationConfirmed
from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.lineage.results import Result, environment
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.sinks.realistic import REALISTIC


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


def bench() -> dict[str, Any]:
    """The figures of all sinks."""
    figures: dict[str, Any] = {}
    with spark_environments(lambda event: None) as environments:
        for sink in REALISTIC:
            target = f"{sink.__module__}:{sink.__name__}"
            alone = _checked(
                Request(target, side_by_side=False), environments, _Watch(), sink.level
            )
            watch = _Watch()
            before, begun = watch.busy, time.perf_counter()
            result = _checked(Request(target), environments, watch, sink.level)
            seconds = time.perf_counter() - begun
            name = sink.__name__
            figures[f"{name}, verdict"] = {
                "value": round(result.duration_s, 1),
                "unit": "s",
                "versus": "one run at a time",
                "ratio": round(result.duration_s / alone.duration_s, 2),
            }
            figures[f"{name}, runs"] = {"value": result.coverage.executions, "unit": "runs"}
            waiting = 1 - (watch.busy - before) / (seconds * (os.cpu_count() or 1))
            figures[f"{name}, waiting"] = {"value": round(max(0.0, waiting), 2), "unit": "share"}
            if watch.first is not None:
                first = round(watch.first, 1)
                figures[f"{name}, first counterexample"] = {"value": first, "unit": "s"}
    return {"name": "sinks", "figures": figures, "environment": environment()}


def _checked(
    request: Request, environments: SparkEnvironments, watch: _Watch, level: str
) -> Result:
    result = check_one(request, environments, watch)
    if result.guarantee != level or result.verdict == "unknown":
        raise WrongResultError(f"{request.target}: {result.verdict}, {result.reason}; is {level}")
    return result


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
