"""How many fault runs a minute check-sink makes, kept crashes beside real kills.

Warm: the drivers are started before the clock is. Every run has to show exactly what its fault
does to the sink, or the measurement fails.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bettong.harness.sinks.arena import arenas
from bettong.harness.sinks.job import Target
from bettong.harness.sinks.judge import judge_run
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import SinkRunner
from bettong.harness.sinks.sink_faults import parse_fault
from bettong.harness.sinks.wires import Wires
from bettong.lineage.results import environment

TARGET = "bettong.scenarios.sinks.files:SqliteInsert"
FAULTS = {
    "crash(driver, before batch=1/commits)": {"Duplicate"},
    "crash(driver, after batch=1/commits)": set(),
    "crash(driver, before batch=1/p=0/a=0/source.middle)": set(),
    "storage(EIO, after batch=1/stage=0/p=0/a=0/task)": set(),
}


def bench(kept: int = 20, killed: int = 4) -> dict[str, Any]:
    """Fault runs a minute, and how many times as fast kept crashes are as kills."""
    with arenas(lambda line: None) as arena_for, Wires({}) as wires:
        runner = SinkRunner(arena_for({}), Target(TARGET), Input(), wires)
        runner.run()
        faults = list(FAULTS)
        fast = _per_minute(runner, [faults[i % len(faults)] for i in range(kept)], real=False)
        crashes = [id for id in faults if id.startswith("crash")]
        slow = _per_minute(runner, [crashes[i % 3] for i in range(killed)], real=True)
    unit = "runs/min"
    return {
        "name": "sinks",
        "figures": {
            "fault_runs": {"value": fast, "unit": unit, "versus": "killed", "ratio": fast / slow},
            "killed": {"value": slow, "unit": unit},
        },
        "environment": environment(),
    }


def _per_minute(runner: SinkRunner, ids: Sequence[str], real: bool) -> float:
    begun = time.perf_counter()
    for id in ids:
        run = runner.run([parse_fault(id)], replay_layout=1, real=real)
        seen = judge_run(run, Input(), ordered=False).kinds
        if run.not_fired or seen != FAULTS[id]:
            raise AssertionError(f"{id}: saw {sorted(seen)}, not {sorted(FAULTS[id])}")
    return round(len(ids) * 60 / (time.perf_counter() - begun), 1)
