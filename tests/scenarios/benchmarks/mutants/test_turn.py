"""Searches that take turns go on where they stood still."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bettong.scenarios.benchmarks.mutants.turn import OverError, Turn


def test_a_search_begins_as_many_runs_as_it_may_and_goes_on_there() -> None:
    turn, begun = Turn(), []

    def search() -> None:
        while True:
            with turn.a_run():
                begun.append(len(begun))

    with ThreadPoolExecutor(1) as threads:
        searching = threads.submit(search)
        turn.have(3, searching)
        assert begun == [0, 1, 2]
        turn.have(2, searching)
        assert begun == [0, 1, 2, 3, 4]
        turn.end()
        with pytest.raises(OverError):
            searching.result()


def test_a_turn_ends_when_its_runs_have_ended_or_its_search_has() -> None:
    turn, goes_on, ended = Turn(), threading.Event(), []

    def run(number: int) -> None:
        with turn.a_run():
            goes_on.wait()
            ended.append(number)

    def search() -> None:
        with ThreadPoolExecutor(2) as lanes:
            list(lanes.map(run, range(2)))

    with ThreadPoolExecutor(2) as threads:
        searching = threads.submit(search)
        having = threads.submit(turn.have, 1, searching)
        goes_on.set()
        having.result()
        assert len(ended) == 1
        turn.have(7, searching)
        assert sorted(ended) == [0, 1]
        assert searching.done()
