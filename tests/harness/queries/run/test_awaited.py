"""A job that waits for its own query."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bettong.harness.queries.run.awaited import ended_when_done


class Query:
    """Goes on until it is stopped."""

    def __init__(self, run: str) -> None:
        self.runId = run
        self.ended = threading.Event()

    def stop(self) -> None:
        """Whoever waits for it goes on."""
        self.ended.set()


class Streams:
    """The queries of a session."""

    def __init__(self, *active: Query) -> None:
        self.active = list(active)


@pytest.mark.parametrize("endless", [True, False])
def test_a_query_that_is_waited_for_ends_when_it_has_nothing_left_to_do(endless: bool) -> None:
    old, own = Query("old"), Query("own")
    streams, asked = Streams(old), []

    def goes_on(query: Any) -> bool:
        asked.append(query)
        return endless

    with ended_when_done(streams, {"old"}, goes_on, 0.0) as seen:  # type: ignore[arg-type]
        streams.active.append(own)
        assert own.ended.wait(60)
    assert (asked, seen) == ([own], {"queries": 1, "endless": endless})
    assert not old.ended.is_set()


def test_several_queries_that_are_waited_for_are_counted_and_end() -> None:
    both = [Query("a"), Query("b")]
    with ended_when_done(Streams(*both), set(), lambda query: False, 0.0) as seen:  # type: ignore[arg-type]
        assert all(query.ended.wait(60) for query in both)
    assert seen == {"queries": 2}


def test_a_query_that_fails_is_left_to_who_waits_for_it() -> None:
    own, asked = Query("own"), threading.Event()

    def fails(query: Any) -> bool:
        asked.set()
        raise RuntimeError("it fails")

    with ended_when_done(Streams(own), set(), fails, 0.0) as seen:  # type: ignore[arg-type]
        assert asked.wait(60)
    assert seen == {"queries": 1}
    assert not own.ended.is_set()


def test_a_query_that_is_started_again_after_it_has_failed_ends_too() -> None:
    failing, again = Query("failing"), Query("again")
    streams = Streams(failing)

    def goes_on(query: Any) -> bool:
        if query is failing:
            streams.active = [again]
            raise RuntimeError("it fails")
        return False

    with ended_when_done(streams, set(), goes_on, 0.0) as seen:  # type: ignore[arg-type]
        assert again.ended.wait(60)
    assert seen == {"queries": 1, "endless": False}
    assert not failing.ended.is_set()


def test_a_query_that_is_returned_at_once_is_left_alone() -> None:
    own = Query("own")
    with ended_when_done(Streams(own), set(), lambda query: False, 60.0) as seen:  # type: ignore[arg-type]
        pass
    assert seen == {}
    assert not own.ended.is_set()
