"""Where a driver wakes between what its successor does in one place and in another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.faults.wake import (
    WakeAtRequest,
    WakeAtStep,
    at_request,
    in_batch,
    parse_wake,
)
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.faults.zombie import Amid
from bettong.harness.queries.search.across import Act, across


def batch(*acts: str) -> list[Act]:
    """Each is a place and what is done there, as in ``files open!``; a driver may stand still
    before one with an exclamation mark."""
    found = []
    for order, act in enumerate(acts):
        place, _, what = act.partition(" ")
        found.append(Act(place.replace("files", ""), order, what, f"{order}", what.endswith("!")))
    return found


@pytest.mark.parametrize(
    ("acts", "found"),
    [
        (("files open!", "files rename!", "db BEGIN", "db COPY!"), ["0 2", "1 2", "3 2"]),
        (("files open!", "files rename!"), []),
        (("db BEGIN", "db COPY!"), []),
        (("db SELECT", "files open!", "db COPY!"), ["1 2", "2 1", "2 2", "1 1"]),
        (
            ("store PUT!", "db INSERT!", "store PUT!", "db INSERT!"),
            ["0 3", "2 3", "1 2", "3 2", "1 3", "3 3", "0 2", "2 2"],
        ),
    ],
    ids=["staged and loaded", "files alone", "requests alone", "looked for first", "row by row"],
)
def test_a_driver_wakes_where_its_successor_turns_to_another_place(
    acts: tuple[str, ...], found: list[str]
) -> None:
    pairs = across(batch(*acts), batch(*acts))
    assert [f"{start.at} {until.at}" for start, until in pairs] == found


def test_a_request_comes_after_the_step_at_which_it_is_made() -> None:
    step, request = batch("files open!", "db INSERT!")
    same = replace(request, order=step.order)
    assert across([step], [same, step]) == [(step, same)]


@pytest.mark.parametrize(
    "text",
    [
        "batch=2/sink.file=3.rename",
        "after batch=2/sink.file=3.rename",
        "batch=2/sink.file=3.rename#2",
        "db/batch=2/INSERT=1",
        "db/restarted/INSERT=2",
        "store/batch=12/PUT /rows/batch=?/part=3",
    ],
)
def test_what_a_driver_wakes_at_is_read_as_it_is_written(text: str) -> None:
    assert str(parse_wake(text)) == text


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(ScheduleError):
        parse_wake("")


@pytest.mark.parametrize(
    "fault",
    [
        Amid(Point("batch=1/sink.file=2.rename"), WakeAtStep(Point("batch=2/sink.file=3.rename"))),
        Amid(
            Point("batch=1/sink.file=2.rename"),
            WakeAtRequest(in_batch("omit", "db", "", "BEGIN", 1, 2)),
        ),
        Amid(
            Point("batch=1/sink.file=2.rename"),
            WakeAtRequest(at_request("omit", "db", "BEGIN", 2)),
        ),
        WireFault(
            in_batch("omit", "db", "", "COPY", 1, 1),
            "amid",
            WakeAtStep(Point("batch=2/sink.file=3.rename")),
        ),
        WireFault(
            in_batch("omit", "db", "", "COPY", 1, 1),
            "amid",
            WakeAtRequest(in_batch("omit", "store", "", "PUT", 1, 2)),
        ),
    ],
    ids=lambda fault: fault.id,
)
def test_a_driver_that_wakes_across_places_is_named_by_both(fault: Amid | WireFault) -> None:
    assert parse_fault(fault.id).id == fault.id
    assert "the old one went on" in fault.describe()
