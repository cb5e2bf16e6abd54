"""A fault that hits the recovery from an earlier one is tried with it, also where each of the two
was tried alone under the same name."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.lineage import Why
from bettong.lineage.faults import Bounds, FaultSet
from bettong.lineage.search import loop
from bettong.lineage.search.executor import Execution, SideBySide

_STEPS = (
    ("offsets", "after"),
    ("sink.file=1.open", "before"),
    ("sink.file=2.rename", "before"),
    ("commits", "before"),
    ("commits", "after"),
)


def ran(schedule: FaultSet) -> QueryRun:
    """Of one batch, which after each fault is written once more; each fault leaves a trace."""
    left, incarnation, points = "", 1, list[CrashPoint]()
    met = Counter[tuple[str, str]]()
    faults = [parse_fault(id) for id in schedule]
    steps = list(_STEPS)
    while steps:
        name, phase = steps.pop(0)
        met[name, phase] += 1
        point = Point(f"batch=0/{name}", phase, met[name, phase])  # type: ignore[arg-type]
        points.append(CrashPoint(point, incarnation, f"{left}{name} {phase}"))
        if fired := [fault.id for fault in faults if fault.recovers_from == point]:
            incarnation += 1
            left += f"{fired}, "
            steps = [] if (name, phase) == _STEPS[-1] else list(_STEPS[1:])
    return QueryRun(crash_points=points, drained=True)


def searched(why: Why, most: int, breaks: FaultSet | None = None) -> set[FaultSet]:
    """The sets that a search runs; only those with all of ``breaks`` are violations."""

    def attempt(schedule: FaultSet) -> Execution:
        if breaks is not None and breaks <= schedule:
            return Execution(schedule, "violation")
        faults = [parse_fault(id) for id in sorted(schedule)]
        return Execution(schedule, "good", why.lineage(faults, ran(schedule)))

    clean = ran(frozenset())
    why.read_clean(clean, [])
    findings = loop.search(
        SideBySide(attempt, lambda: 1),
        Bounds({}, most),
        suggest=why.likely,
        at_a_time=lambda faults: 3,
        find_all=True,
        smallest_first=True,
    )
    assert findings.complete
    assert findings.minimal == ([] if breaks is None else [breaks])
    return {execution.schedule for execution in findings.executions}


_FIRST = "crash(driver, before batch=0/sink.file=2.rename)"
_SECOND = "crash(driver, before batch=0/commits)"


def test_a_sink_is_found_that_forgets_what_it_did_to_recover() -> None:
    """It notes that a batch is there when it writes it, but not when it writes it once more: each
    of the crashes alone does no harm."""
    searched(Why(1, 1, 2), 2, frozenset({_FIRST, _SECOND}))


@pytest.mark.parametrize("most", [2, 3])
def test_all_that_a_run_puts_up_is_tried(most: int) -> None:
    why = Why(1, 1, most)
    found = searched(why, most)
    assert found - {frozenset()} == why.known
    assert frozenset({_FIRST, _SECOND}) in found
    refused = "storage(EIO, before batch=0/sink.file=1.open)"
    assert frozenset({refused, _SECOND}) in found


@pytest.mark.parametrize("drained", [True, False])
def test_where_a_batch_is_never_recorded_no_recovery_of_others_is_met(drained: bool) -> None:
    """Its row is refused, or an earlier batch has taken its rows, and that is good: what would hit
    the recovery from another fault is no reason to run both, for it would not fire."""
    odd = "odd-row(batch=2)"

    def of_three_batches(schedule: FaultSet) -> QueryRun:
        points = list(ran(schedule - {odd}).crash_points)
        is_odd = odd in schedule
        for batch in (1,) if is_odd else (1, 2):
            points.append(CrashPoint(Point(f"batch={batch}/commits", "after"), 1, f"{batch}"))
        return QueryRun(crash_points=points, drained=drained or not is_odd)

    why = Why(1, 3, 2)

    def attempt(schedule: FaultSet) -> Execution:
        faults = [parse_fault(id) for id in sorted(schedule)]
        return Execution(schedule, "good", why.lineage(faults, of_three_batches(schedule)))

    why.read_clean(of_three_batches(frozenset()), [])
    findings = loop.search(
        SideBySide(attempt, lambda: 1),
        Bounds({}, 2),
        suggest=why.likely,
        at_a_time=lambda faults: 3,
        find_all=True,
        smallest_first=True,
    )
    assert findings.complete
    with_it = [e.schedule for e in findings.executions if odd in e.schedule]
    assert frozenset({odd}) in with_it
    assert not [schedule for schedule in with_it if any("#2" in id for id in schedule)]


def of_two_batches(schedule: FaultSet, tidy: bool) -> QueryRun:
    """Each death of the driver leaves something behind; ``tidy``: until its batch is recorded."""
    left, incarnation, points = "", 1, list[CrashPoint]()
    met = Counter[tuple[str, str]]()
    faults = [parse_fault(id) for id in schedule]
    steps = [(batch, name, phase) for batch in range(2) for name, phase in _STEPS]
    while steps:
        batch, name, phase = steps.pop(0)
        step = f"batch={batch}/{name}"
        met[step, phase] += 1
        point = Point(step, phase, met[step, phase])  # type: ignore[arg-type]
        points.append(CrashPoint(point, incarnation, f"{left}{step} {phase}", name))
        if fired := [fault.id for fault in faults if fault.recovers_from == point]:
            incarnation += 1
            left += f"{fired}, "
            if (name, phase) != _STEPS[-1]:
                steps = [*((batch, *x) for x in _STEPS[1:]), *(x for x in steps if x[0] > batch)]
        elif tidy and (name, phase) == _STEPS[-1]:
            left = ""
    return QueryRun(crash_points=points, drained=True)


@pytest.mark.parametrize("tidy", [True, False])
def test_the_driver_dies_at_the_same_place_of_two_batches_where_the_first_leaves_a_trace(
    tidy: bool,
) -> None:
    """What is put aside to recover from the first one, and stays there, is taken for the second."""
    why = Why(2, 2, 2)

    def attempt(schedule: FaultSet) -> Execution:
        faults = [parse_fault(id) for id in sorted(schedule)]
        lineage = why.lineage(faults, of_two_batches(schedule, tidy))
        return Execution(schedule, "good", lineage)

    why.read_clean(of_two_batches(frozenset(), tidy), [])
    findings = loop.search(
        SideBySide(attempt, lambda: 1),
        Bounds({}, 2),
        suggest=why.likely,
        at_a_time=lambda faults: 3,
        find_all=True,
        smallest_first=True,
    )
    assert findings.complete
    both = {
        frozenset(f"crash(driver, before batch={batch}/{step})" for batch in range(2))
        for step in ("commits", "sink.file=1.open", "sink.file=2.rename")
    }
    tried = {execution.schedule for execution in findings.executions}
    assert both & tried == (set() if tidy else both)
    crashes = [{id for id in faults if id.startswith("crash(driver")} for faults in tried]
    batches = [{id.partition("/")[0][-1] for id in each} for each in crashes]
    assert batches.count({"0", "1"}) == (0 if tidy else len(both))


def test_what_was_put_up_is_known_to_a_search_that_goes_on() -> None:
    before, after = Why(1, 1, 2), Why(1, 1, 2)
    searched(before, 2)
    after.learn(json.loads(json.dumps(before.news())))
    assert after.known == before.known
    assert before.news()["known"] == []  # each line of a log has what is new only
