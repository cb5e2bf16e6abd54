"""Windows, on their own and through batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from batch_run import Simulation, aligned
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import (
    Tick,
    application,
    decoder,
    encoder,
    expiring,
    interpret,
    key_extractor,
    sink,
    source,
    watermark,
)
from bettong.engine.event_time import Grid
from bettong.engine.functions import StateFunction
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.engine.windows import Lateness, count_window, session, sliding, tumbling
from bettong.lineage.errors import UsageError


@dataclass
class Times:
    times: list[float] = field(default_factory=list)


def add(at: float, times: Times) -> None:
    times.times.append(at)


def join(first: Times, second: Times) -> None:
    first.times += second.times


def itself(at: float) -> float:
    return at


def fired(step: StateFunction, *times: float | Tick) -> list[tuple[float, float, list[float]]]:
    entity = step.state.cls()
    results = [r for at in times for r in step.call(at, entity)]
    return [(r.start, r.end, r.value.times) for r in results]


def test_count_windows_follow_each_other() -> None:
    step = count_window("pairs", Times, add, 2)
    assert fired(step, 1, 2, 3, 4, 5) == [(0, 2, [1, 2]), (2, 4, [3, 4])]


def test_tumbling_windows_fire_when_the_clock_reaches_their_end() -> None:
    step = tumbling("tens", Times, add, itself, 10)
    assert fired(step, 1, 9, 10, 12, 35) == [(0, 10, [1, 9]), (10, 20, [10, 12])]
    waiting = tumbling("tens", Times, add, itself, 10, delay=5)
    assert fired(waiting, 1, 12, 9, 15) == [(0, 10, [1, 9])]


def test_sliding_windows_overlap() -> None:
    step = sliding("slides", Times, add, itself, 10, 5)
    assert fired(step, 7, 12, 20) == [(0, 10, [7]), (5, 15, [7, 12]), (10, 20, [12])]


@pytest.mark.parametrize(
    ("late", "expected", "dropped"),
    [
        ("drop", [(0, 10, [1])], 1),
        ("fire again", [(0, 10, [1]), (0, 10, [1, 2])], 0),
        ("oldest", [(0, 10, [1])], 0),
    ],
)
def test_late_messages(late: Lateness, expected: list[object], dropped: int) -> None:
    step = tumbling("tens", Times, add, itself, 10, late=late, keep=100)
    entity = step.state.cls()
    results = [r for at in (1, 11, 2) for r in step.call(at, entity)]
    assert [(r.start, r.end, r.value.times) for r in results] == expected
    assert entity.dropped == dropped
    later = step.call(20.0, entity)
    assert later[0].value.times == ([11, 2] if late == "oldest" else [11])


def test_dropped_messages_can_be_had() -> None:
    def reported(at: float) -> list[str]:
        return [f"{at} is late"]

    for step in (
        tumbling("tens", Times, add, itself, 10, on_late=reported),
        session("visits", Times, add, itself, 5, join, on_late=reported),
    ):
        entity = step.state.cls()
        given_ = [r for at in (1.0, 21.0, 2.0) for r in step.call(at, entity)]
        assert given_[-1] == "2.0 is late"
        assert entity.dropped == 1


def test_sessions_end_after_a_gap_and_are_joined() -> None:
    step = session("visits", Times, add, itself, 10, join, delay=20)
    assert fired(step, 0, 15, 8, 60) == [(0, 25, [0, 8, 15])]
    assert fired(step, 0, 60, 5) == [(0, 10, [0])]


def test_a_message_is_late_for_sessions_when_its_own_would_be_over() -> None:
    step = session("visits", Times, add, itself, 10, join)
    entity = step.state.cls()
    for at, dropped in ((20.0, 0), (10.0, 1), (40.0, 1), (30.0, 2)):
        step.call(at, entity)
        assert entity.dropped == dropped
    assert fired(step, 20, 10.5, 40) == [(10.5, 30, [20, 10.5])]


def test_lengths_are_checked() -> None:
    with pytest.raises(UsageError, match="window w: size must be more than 0, got 0"):
        tumbling("w", Times, add, itself, 0)


def test_ticks_fire_the_windows_of_silent_keys() -> None:
    def open_windows() -> list[StateFunction]:
        return [
            tumbling("tens", Times, add, itself, 10, delay=5),
            session("visits", Times, add, itself, 8, join, delay=5),
        ]

    for step in open_windows():
        entity = step.state.cls()
        step.call(2.0, entity)
        assert step.call(Tick(14.0), entity) == []
        (window,) = step.call(Tick(15.0), entity)
        assert (window.end, window.value.times) == (10, [2])
        assert step.call(Tick(math.inf), entity) == []
        assert step.call(3.0, entity) == []
        assert entity.dropped == 1
    pairs = count_window("pairs", Times, add, 2)
    assert pairs.call(Tick(math.inf), pairs.state.cls()) == []


@decoder
def number(data: bytes) -> float:
    return float(data)


@key_extractor
def parity(at: float) -> int:
    return int(at) % 2


@encoder
def text(value: object) -> bytes:
    return repr(value).encode()


@given(
    st.lists(st.integers(0, 60).map(lambda n: b"%d" % n), max_size=30),
    st.integers(1, 7),
    st.integers(1, 5),
    st.sampled_from(["drop", "fire again", "oldest"]),
)
def test_windows_do_not_depend_on_batches(
    times: list[bytes], size: int, every: int, late: Lateness
) -> None:
    lines = source("times", number)
    keyed = lines.key_by(parity).merge(watermark(lines, itself, every))
    steps = [
        expiring(tumbling("fives", Times, add, itself, 5), itself, 8, lambda _: ["gone"]),
        sliding("slides", Times, add, itself, 10, 5, delay=3, late=late, keep=10),
        session("visits", Times, add, itself, 4, join, delay=3),
        count_window("threes", Times, add, 3),
    ]
    app = application(
        "windows", *(keyed.to(step).to_sink(sink(f"{step.name}_out", text)) for step in steps)
    )
    expected = interpret(app, {"times": times})
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), {"times": times})
    simulation.run([*aligned(simulation.streams, size), {"times": len(times)}])
    for node in app.sinks:
        wanted = [(o.id, o.key, o.data) for o in expected.outputs if o.sink == node.name]
        assert sorted(simulation.sinks[node.name].rows) == sorted(wanted)


def test_windows_of_fractions_of_a_second_cover_each_time_as_often_as_it_is_written() -> None:
    """0.6 is less than 6 * 0.1 in binary: windows found by division lose it, or take it twice."""
    end = Tick(math.inf)
    tens = [n / 10 for n in range(1000)]
    tenths = tumbling("tenths", Times, add, itself, 0.1)
    found = fired(tenths, *tens, end)
    assert found == [(at, (n + 1) / 10, [at]) for n, at in enumerate(tens)]
    overlapping = sliding("overlapping", Times, add, itself, 0.3, 0.1)
    seen = [at for _, _, times in fired(overlapping, *tens, end) for at in times]
    assert sorted(seen) == sorted(3 * tens)
    fives = tumbling("fives", Times, add, itself, 5)
    just_before = math.nextafter(1.7e9, 0)
    assert [times for _, _, times in fired(fives, just_before, 1.7e9, end)] == [
        [just_before],
        [1.7e9],
    ]


@given(
    st.floats(-1e10, 1e10),
    st.decimals("0.001", 100, places=3),
    st.integers(1, 5),
)
def test_a_time_is_in_each_window_that_is_not_over_and_in_no_other(
    at: float, slide: Decimal, times: int
) -> None:
    grid = Grid(float(slide * times), float(slide))
    starts = list(grid.starts(at))
    assert len(starts) == times
    assert all(start <= at < grid.end(start) for start in starts)


@pytest.mark.parametrize("never", [math.nan, math.inf, -math.inf])
def test_a_time_that_never_comes_is_a_mistake_of_its_message(never: float) -> None:
    steps = [
        tumbling("tens", Times, add, itself, 10),
        session("visits", Times, add, itself, 4, join),
        expiring(tumbling("others", Times, add, itself, 10), itself, 8),
    ]
    for step in steps:
        entity = step.state.cls()
        with pytest.raises(ValueError, match="an event time is a number of seconds"):
            list(step.call(never, entity))
        assert entity == step.state.cls()


def test_a_late_message_is_in_the_oldest_window_once() -> None:
    step = sliding("slides", Times, add, itself, 10, 5, late="oldest")
    entity = step.state.cls()
    for at in (1, 12, 7):  # the window from 0 on is over, the one from 5 on is open
        step.call(at, entity)
    assert entity.windows[5.0].value.times == [12, 7]
