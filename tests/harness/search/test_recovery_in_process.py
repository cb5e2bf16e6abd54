"""What a restarted node does rests on what its disk holds: a fault that leaves another record there
is tried together with a crash after it, and one that leaves none is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.runs.campaign import Campaign
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.executor import ScenarioExecutor
from bettong.lineage.search.hypotheses import Hypotheses

REPLY_LOST = "omit-reply(driver->gateway, batch=0/source.commit)"
CRASH = "crash(gateway, before gateway.release/amounts/5)"
CRASH_AFTER_AGAIN = "crash(gateway, after gateway.release/amounts/2#2)"


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    with LocalBackend(runner="in-process") as found:
        yield found


@pytest.mark.parametrize(
    ("name", "left"), [("gateway_notes_releases_twice", True), ("counting", False)]
)
def test_a_pair_is_put_up_where_the_first_fault_leaves_another_record(
    backend: LocalBackend, tmp_path: Path, name: str, left: bool
) -> None:
    scenario = load_scenario(name)
    campaign = Campaign(backend, scenario, tmp_path, scenario.messages(), replay=False)
    executor = ScenarioExecutor(campaign, batches=2)
    clean = executor.run()
    executor.learn(clean)
    with Hypotheses(clean.lineage, SearchBounds().bounds) as search:
        for single in (REPLY_LOST, CRASH):
            assert search.admits(frozenset({single}))
            seen = executor.run(frozenset({single}))
            assert seen.outcome == "good"  # alone, each is survived
            executor.learn(seen)
            search.exclude(seen.schedule)
            search.extend(seen.lineage)
            assert not search.admits(frozenset({single}))
        for crash in (CRASH, CRASH_AFTER_AGAIN):
            pair = frozenset({REPLY_LOST, crash})
            assert search.admits(pair) is left
            assert executor.equivalence.canonical(pair) == pair  # no other history stands for it
