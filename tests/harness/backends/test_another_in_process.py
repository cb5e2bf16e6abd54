"""Backends for runs side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.lineage.results import Outcome

CRASH = Schedule.from_dict(
    {"faults": [{"crash": {"node": "driver", "before": "batch=1/sink.commit"}}]}
)


def fork_servers() -> set[int]:
    children = psutil.Process().children()
    return {p.pid for p in children if any("fork_server" in part for part in p.cmdline())}


def outcome(backend: LocalBackend, folder: Path) -> Outcome:
    scenario = load_scenario("counting")
    return Campaign(backend, scenario, folder, scenario.messages()).run(CRASH).outcome


def test_another_one_shares_what_forks_nodes(tmp_path: Path) -> None:
    before = fork_servers()
    with LocalBackend(runner="in-process") as first:
        ours = fork_servers()
        assert ours > before
        with first.another() as second, second.another() as third:
            assert fork_servers() == ours
            assert len({b.conductor.address for b in (first, second, third)}) == 3
            backends = {tmp_path / str(n): b for n, b in enumerate((first, second, third))}
            with ThreadPoolExecutor() as pool:
                seen = list(pool.map(outcome, backends.values(), backends))
            assert seen == ["good"] * 3
        assert outcome(first, tmp_path / "alone") == "good"
    assert fork_servers() == before
