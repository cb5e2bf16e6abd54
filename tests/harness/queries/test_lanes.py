"""The second lane of a check: whether there is one, and what it takes to know that."""

from __future__ import annotations

import contextlib
import os

import pytest
from row_a_batch import Runner, Store

from bettong.harness.events import ignore
from bettong.harness.queries.apart import REPLAYED, same_rows
from bettong.harness.queries.judge import fingerprint
from bettong.harness.queries.lanes import Lanes, Links
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.search.confirmation import DisturbedError


class Lane(Runner):
    """Notes its replays."""

    def __init__(self, store: Store, ready: bool = True) -> None:
        super().__init__(store, store, marked=True)
        self.ready, self.started, self.replays = ready, 0, 0

    def run(self, faults: object = (), **how: object) -> QueryRun:
        self.replays += faults == [REPLAYED]
        return super().run(faults, **how)  # type: ignore[arg-type]

    def start_ahead(self) -> None:
        self.started += 1


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def lanes(*made: Lane, **asked: object) -> Lanes:
    def runner(lane: int, links: Links) -> QueryRunner:
        return made[lane]  # type: ignore[return-value]

    request = Request("format:parquet", **asked)  # type: ignore[arg-type]
    return Lanes(request, {}, {}, runner, contextlib.ExitStack(), ignore)


@pytest.mark.usefixtures("two_cores")
def test_a_lane_that_is_apart_takes_one_replay_alone_to_be_known() -> None:
    first, second = Lane(Store()), Lane(Store())
    found = lanes(first, second)
    assert found.apart(first.run(), fingerprint, same_rows) == [second]
    assert (first.replays, second.started) == (2, 1)  # alone, and beside the other one
    assert found.replayed is not None
    assert found.apart(first.run(), fingerprint, same_rows) == [second]
    assert first.replays == 3


@pytest.mark.usefixtures("two_cores")
def test_lanes_that_are_not_apart_are_none() -> None:
    place = Store()
    first, second = Lane(place), Lane(place)
    with pytest.raises(DisturbedError) as raised:
        lanes(first, second).apart(first.run(), fingerprint, same_rows)
    assert not raised.value.in_sight


@pytest.mark.usefixtures("two_cores")
def test_a_lane_that_is_still_being_started_is_not_waited_for() -> None:
    first, second = Lane(Store()), Lane(Store(), ready=False)
    found = lanes(first, second)
    assert found.beside(first.run(), None, fingerprint, same_rows) is None
    second.ready, alone = True, first.run([REPLAYED])
    assert found.beside(first.run(), alone, fingerprint, same_rows) == [second]
    assert first.replays == 2
    assert found.replayed is alone


@pytest.mark.usefixtures("two_cores")
def test_where_there_is_one_lane_no_run_is_made_for_another() -> None:
    first = Lane(Store())
    closed = lanes(first)
    closed.close("it writes elsewhere")
    for found in (closed, lanes(first, only=("empty(batch=2)",)), lanes(first, side_by_side=False)):
        assert found.apart(QueryRun(), fingerprint, same_rows) == []
        assert found.beside(QueryRun(), None, fingerprint, same_rows) == []
        assert found.replayed is None
    assert first.replays == 0
