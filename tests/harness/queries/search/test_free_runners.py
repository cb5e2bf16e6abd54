"""Which runner makes a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.search.free_runners import FreeRunners

LOST = [parse_fault("lost-executor(before batch=1/p=0/a=0/source.middle)")]
CRASH = [parse_fault("crash(driver, before batch=1/commits)")]


def test_runs_with_two_cores_wait_for_the_first_runner_and_others_take_any() -> None:
    first, second = (cast(QueryRunner, object()) for _ in range(2))
    runners = FreeRunners(first)
    runners.add(second)
    with runners.taken_for(LOST) as runner, runners.taken_for(CRASH) as other:
        assert (runner, other) == (first, second)
    begun = threading.Event()

    def lost() -> QueryRunner:
        begun.set()
        with runners.taken_for(LOST) as runner:
            return runner

    with ThreadPoolExecutor(1) as threads:
        with runners.taken_for(LOST):
            later = threads.submit(lost)
            begun.wait()
            with runners.taken_for(CRASH) as other:
                assert other is second
            assert not later.done()
        assert later.result() is first


def test_beside_a_run_alone_no_other_goes_on() -> None:
    first, second = (cast(QueryRunner, object()) for _ in range(2))
    runners = FreeRunners(first)
    runners.add(second)
    asked, has_begun, may_end = threading.Event(), threading.Event(), threading.Event()

    def alone() -> bool:
        asked.set()
        with runners.alone_for(LOST) as runner:
            has_begun.set()
            may_end.wait()
            return runner is first

    def beside() -> bool:
        with runners.taken_for(CRASH):
            return may_end.is_set()

    with ThreadPoolExecutor(2) as threads:
        with runners.taken_for(CRASH):
            held = threads.submit(alone)
            asked.wait()
            assert not has_begun.is_set()
        has_begun.wait()
        other = threads.submit(beside)
        assert not other.done()
        may_end.set()
        assert held.result()
        assert other.result()
    with runners.taken_for(LOST) as runner, runners.taken_for(CRASH) as last:
        assert (runner, last) == (first, second)
