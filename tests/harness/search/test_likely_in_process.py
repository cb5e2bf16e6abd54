"""What is said to be likely to break a scenario is run before all else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.fault import Fault
from bettong.harness.runs.campaign import Campaign
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.faults import FaultSet
from bettong.lineage.search.loop import Budget

LIKELY = frozenset({"crash(receiver, before receiver.commit/batch=0)"})
NONE_OF_THIS = frozenset({"crash(gateway, before gateway.ack/of_another_stream/7)"})


def test_what_is_likely_comes_first_and_what_names_nothing_here_is_left_out(
    tmp_path: Path,
) -> None:
    scenario = load_scenario("counting_two")
    with LocalBackend(runner="in-process") as backend:
        campaign = Campaign(backend, scenario, tmp_path, scenario.messages())
        known: list[str] = []

        def likely(faults: Sequence[Fault]) -> Sequence[FaultSet]:
            known.extend(fault.id for fault in faults)
            return [NONE_OF_THIS, LIKELY]

        result = search_scenario(campaign, SearchBounds(), budget=Budget(runs=3), likely=likely)
    assert [frozenset(run.faults) for run in result.runs] == [frozenset(), frozenset(), LIKELY]
    assert len(known) == len(set(known)) and set(known) >= LIKELY  # asked once
