"""What safety and knowledge cost: the same run without resilience, with metrics, and with a trace.

Runs take turns, so that what else the machine does falls on all of them, and are counted per second
of CPU; of each way the median counts. Every output is checked. What tracing costs when nobody
traces is too little to be seen so: the steps of the run, which the trace counts, times what a step
costs then.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.metrics.config import Metrics
from bettong.engine.net.access import ListenConfig
from bettong.engine.steps import Instrumentation
from bettong.lineage.results import environment
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.engine import check, configured, prepare
from bettong.scenarios.benchmarks.steps import idle_seconds

EVENTS = 500_000
FULL_EVENTS = 5_000_000
BATCH = 50_000
KEYS = 20_000
ROUNDS = 5


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    events = FULL_EVENTS if full else EVENTS
    spent: dict[str, list[float]] = {
        "usual": [],
        "without resilience": [],
        "with metrics": [],
        "with a trace": [],
    }
    taken = 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "in.arrow"
        expected = prepare(path, events, KEYS)
        for _ in range(ROUNDS):
            for way in spent:
                with tempfile.TemporaryDirectory(dir=name) as folder:
                    config, out = configured(path, BATCH, Path(folder))
                    spent[way].append(_cpu_seconds(_ways(config, Path(folder))[way]))
                    check(out.directory, expected)
                    if way == "with a trace":
                        reported = map(json.loads, (Path(folder) / "trace.jsonl").open())
                        taken = sum(event["phase"] == "before" for event in reported)
    cost = {way: statistics.median(seconds) for way, seconds in spent.items()}
    return {
        "name": "price",
        "figures": {
            "usual": {"value": round(events / cost["usual"]), "unit": "events/CPU s"},
            "resilience": _price(cost["usual"], cost["without resilience"], "without it"),
            "metrics": _price(cost["with metrics"], cost["usual"], "without them"),
            "a trace": _price(cost["with a trace"], cost["usual"], "without one"),
            "idle tracing": _price(
                cost["usual"], cost["usual"] - taken * idle_seconds(), f"without its {taken} steps"
            ),
        },
        "environment": environment(),
    }


def _ways(config: RunConfig, folder: Path) -> Mapping[str, RunConfig]:
    traced = Instrumentation(run="price", node="driver", trace=str(folder / "trace.jsonl"))
    metrics = Metrics(folder / "metrics.jsonl", ListenConfig(Address("127.0.0.1", 0)))
    return {
        "usual": config,
        "without resilience": replace(config, resilience=False),
        "with metrics": replace(config, metrics=metrics),
        "with a trace": replace(config, instrumentation=traced),
    }


def _cpu_seconds(config: RunConfig) -> float:
    begin = time.process_time()
    run_in_process(running_sum.app, config)
    spent = time.process_time() - begin
    steps.install(Instrumentation())
    return spent


def _price(with_it: float, without: float, versus: str) -> dict[str, Any]:
    return {
        "value": round(100 * (with_it / without - 1), 3),
        "unit": "% more CPU",
        "versus": versus,
        "ratio": round(with_it / without, 3),
    }
