"""What a restarted node does rests on what its disk holds: a fault that leaves another record there
is tried together with a crash after it, and one that leaves none is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bettong.harness.api import load_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.runs.campaign import Campaign
from bettong.harness.search.bounds import SearchBounds, bounds_of
from bettong.harness.search.executor import ScenarioExecutor
from bettong.harness.search.ldfi import set_ending
from bettong.lineage.search.hypotheses import Hypotheses

REPLY_LOST = "omit-reply(driver->gateway, batch=0/source.commit)"
REQUEST_LOST = "omit(driver->gateway, batch=0/source.commit)"
CRASH = "crash(gateway, before gateway.release/amounts/5)"
CRASH_AFTER_AGAIN = "crash(gateway, after gateway.release/amounts/2#2)"


@pytest.mark.parametrize(
    ("name", "first", "left"),
    [
        ("gateway_notes_releases_twice", REPLY_LOST, True),
        ("counting", REPLY_LOST, True),  # it has answered twice, and may remember that
        ("counting", REQUEST_LOST, False),
    ],
)
def test_a_pair_is_put_up_where_the_first_fault_leaves_another_record(
    backend: LocalBackend, tmp_path: Path, name: str, first: str, left: bool
) -> None:
    with searched(backend, tmp_path, name, (first, CRASH)) as (search, executor):
        for crash in (CRASH, CRASH_AFTER_AGAIN) if first == REPLY_LOST else (CRASH,):
            pair = frozenset({first, crash})
            assert search.admits(pair) is left
            assert executor.equivalence.canonical(pair) == pair  # no other history stands for it


@pytest.mark.parametrize("name", ["sink_remembers_staged", "counting_two"])
def test_a_pair_is_put_up_where_the_first_fault_leaves_something_in_a_servers_memory(
    backend: LocalBackend, tmp_path: Path, name: str
) -> None:
    reply_lost = "omit-reply(driver->receiver, batch=0/p=0/a=0/sink.prepare)"
    crash = "crash(driver, before batch=0/state.manifest)"
    with searched(backend, tmp_path, name, (reply_lost, crash)) as (search, executor):
        pair = frozenset({reply_lost, crash})
        assert search.admits(pair)
        broken = name != "counting_two"
        assert executor.run(pair).outcome == ("violation" if broken else "good")


def test_a_pair_is_put_up_where_the_first_fault_leaves_one_record_less(
    backend: LocalBackend, tmp_path: Path
) -> None:
    """The commit that fails half way is answered when it is asked for again: together that is as
    many as it writes otherwise, and the log goes on in another file."""
    unsynced = "storage(EIO, receiver, before receiver.commit/batch=0, call 14)"
    crash = "crash(receiver, before receiver.commit/batch=1)"
    name = "sink_keeps_half_begun_segment"
    with searched(backend, tmp_path, name, (unsynced, crash), "standard") as (search, executor):
        pair = frozenset({unsynced, crash})
        assert search.admits(pair)
        assert executor.run(pair).outcome == "violation"


@contextlib.contextmanager
def searched(
    backend: LocalBackend, folder: Path, name: str, singles: Sequence[str], bounds: str = ""
) -> Iterator[tuple[Hypotheses, ScenarioExecutor]]:
    """A search that knows the clean run and those under single faults, which are survived."""
    scenario = load_scenario(name)
    campaign = Campaign(backend, scenario, folder, scenario.messages(), replay=False)
    reach = SearchBounds()
    if bounds:
        reach = bounds_of(bounds).over(scenario)
        set_ending(campaign, reach)
    executor = ScenarioExecutor(campaign, 2, reach.bounds)
    clean = executor.run()
    executor.learn(clean)
    with Hypotheses(clean.lineage, reach.bounds) as search:
        for single in singles:
            assert search.admits(frozenset({single}))
            seen = executor.run(frozenset({single}))
            assert seen.outcome == "good"
            executor.learn(seen)
            search.exclude(seen.schedule)
            search.extend(seen.lineage)
            assert not search.admits(frozenset({single}))
        yield search, executor
