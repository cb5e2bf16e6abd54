"""What can hit a run of a job."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.operations import LONGER
from bettong.harness.queries.job.lineage import JobWhy
from bettong.harness.queries.run.observation import QueryRun


@pytest.mark.parametrize(("without_data", "spared"), [(3, True), (None, False)])
def test_before_a_last_batch_without_data_is_planned_nothing_fires(
    without_data: int | None, spared: bool
) -> None:
    moments = [
        CrashPoint(Point(f"batch={batch}/{step}", phase), 1, f"{batch} {step} {phase}")  # type: ignore[arg-type]
        for batch in range(4)
        for step in ("offsets", "commits")
        for phase in ("before", "after")
    ]
    run = QueryRun(crash_points=moments)
    why = JobWhy(4, 4, 2)
    why.without_data = without_data
    why.read_clean(run, [])
    found = set(why.lineage([], run).faults)
    late = {"crash(driver, after batch=2/commits)", "crash(driver, before batch=3/offsets)"}
    assert found.isdisjoint(late) == spared
    assert "crash(driver, after batch=3/offsets)" in found
    assert "crash(driver, before batch=2/offsets)" in found


def test_of_the_stores_that_a_task_of_a_join_writes_the_first_and_the_last_are_hit() -> None:
    stores = ["left-values", "left-counts", "right-values", "right-counts"]
    moments = [
        CrashPoint(Point(f"batch=1/state/op=0/p={p}/{store}/delta"), 1, f"{p} {store}")
        for p in range(2)
        for store in stores
    ]
    alone = CrashPoint(Point("batch=1/state/op=1/p=0/delta"), 1, "another operator")
    recorded = CrashPoint(Point("batch=1/commits", "after"), 1, "recorded")
    run = QueryRun(crash_points=[*moments, alone, recorded])
    why = JobWhy(2, 2, 1)
    why.read_clean(run, [])
    found = " ".join(why.lineage([], run).faults)
    steps = [moment.point.step for moment in (*moments, alone)]
    assert [step for step in steps if f"crash(driver, before {step})" in found] == [
        f"batch=1/state/op=0/p={p}/{store}/delta" for p in range(2) for store in stores[::3]
    ] + [alone.point.step]


@pytest.mark.parametrize(
    ("steps", "held"),
    [
        (("p=0/a=0/source.middle", "stage=0/p=0/a=0/task"), "p=0/a=0/source.middle"),
        (
            ("stage=0/p=0/a=0/task", "stage=1/p=1/a=0/task", "stage=1/p=0/a=0/task"),
            "stage=1/p=0/a=0/task",
        ),
    ],
)
def test_a_driver_is_held_amid_its_tasks_whether_its_source_tells_of_rows_or_not(
    steps: tuple[str, ...], held: str
) -> None:
    moments = [
        CrashPoint(Point(f"batch={batch}/{step}", phase), 1, f"{batch} {step} {phase}")  # type: ignore[arg-type]
        for batch in range(2)
        for step in ("offsets", *steps, "commits")
        for phase in ("before", "after")
    ]
    run = QueryRun(crash_points=moments)
    why = JobWhy(2, 4, 1)
    why.read_clean(run, [])
    assert {id for id in why.lineage([], run).faults if id.startswith("pause(driver")} == {
        f"pause(driver, from batch=1/{at} until after batch=3/commits)" for at in (held, "commits")
    }


@pytest.mark.parametrize("divisible", [True, False])
def test_more_batches_are_tried_where_there_are_rows_for_them(divisible: bool) -> None:
    moments = [
        CrashPoint(Point(f"batch={batch}/{step}", phase), 1, f"{batch} {step} {phase}")  # type: ignore[arg-type]
        for batch in range(2)
        for step in ("offsets", "commits")
        for phase in ("before", "after")
    ]
    why = JobWhy(2, 2, 1)
    why.divisible = divisible
    run = QueryRun(crash_points=moments)
    why.read_clean(run, [])
    assert (LONGER.id in why.lineage([], run).faults) == divisible


@pytest.mark.parametrize("own", [True, False])
def test_a_source_of_the_users_own_is_asked_once_more_early(own: bool) -> None:
    """It may have moved a place of its own when it was asked, and nobody sees that."""
    moments = [
        CrashPoint(Point(f"batch={batch}/{step}", phase), 1, f"{batch} {step}")  # type: ignore[arg-type]
        for batch in range(2)
        for step, phase in (("offsets", "before"), ("commits", "before"), ("commits", "after"))
    ]
    moments[3] = replace(moments[3], durable=moments[2].durable)  # as far as is seen
    why = JobWhy(2, 2, 1)
    why.own_source = own
    run = QueryRun(crash_points=moments)
    why.read_clean(run, [])
    asked = "crash(driver, before batch=1/offsets)"
    assert (asked in why.lineage([], run).faults) == own
    if own:
        assert {asked} in islice(why.likely(), 3)
