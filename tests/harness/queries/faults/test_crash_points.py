"""Which moments of a trace a driver can be crashed at."""

from __future__ import annotations

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import (
    DURABLE,
    CrashPoint,
    FileSteps,
    crash_points,
    lines_asked,
    lines_of_changes,
    read_back,
)
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.lineage import Why
from bettong.lineage.trace import TraceEvent


def operation(kind: str, durable: str) -> TraceEvent:
    return TraceEvent("sink.file", "before", "driver", detail={"op": kind, DURABLE: durable})


def of_spark(step: str, durable: str) -> TraceEvent:
    return TraceEvent(step, "before", "driver", detail={DURABLE: durable})


def test_after_a_change_is_a_moment_where_something_else_changes_before_the_next_step() -> None:
    named = FileSteps()
    events = [
        of_spark("batch=0/offsets", "0"),
        operation("mkdir", "0"),
        operation("change", "1"),  # and a library writes, without asking
        operation("change", "2"),
        operation("rename", "2"),
        operation("change", "3"),
        of_spark("batch=0/commits", "4"),
    ]
    assert [m.point.step for m in crash_points(named(event) for event in events)] == [
        "batch=0/offsets",
        "batch=0/sink.file=1.mkdir",
        "batch=0/sink.file=1.change",
        "batch=0/sink.file=2.rename",
        "batch=0/sink.file=3.change",
        "batch=0/commits",
    ]


def test_what_a_batch_reads_of_what_it_has_put_aside_is_told_from_what_was_there() -> None:
    told = [
        *(("look", "rows/1.json"), ("open", ".1.json"), ("rename", "aside/1.json")),
        *(("look", "aside/1.json"), ("look", "aside/2.json"), ("rename", "rows/1.json")),
    ]
    events = [
        TraceEvent(f"batch={n}/sink.file={place}.{op}", "before", "driver", detail=detail)
        for n in (1, 2)
        for place, (op, path) in enumerate(told, 1)
        for detail in ({"op": op, "path": path},)
    ]
    assert read_back(events, 2) == [Point("batch=2/sink.file=4.look")]
    assert read_back(events, 3) == []


def test_what_starts_the_query_again_is_no_operation_of_the_batch_that_is_replayed() -> None:
    named = FileSteps()
    made = {"op": "mkdir", "outside": True}
    told = [made, made, {"op": "open"}, {"op": "rename"}]
    named(of_spark("batch=1/offsets", "0"))
    named.restart()
    events = [TraceEvent("sink.file", "before", "driver", detail=each) for each in told]
    assert [named(event).step for event in events] == [
        "batch=1/sink.file=1.mkdir",
        "batch=1/sink.file=2.mkdir",
        "batch=1/sink.file=1.open",
        "batch=1/sink.file=2.rename",
    ]


def test_the_line_that_changes_files_past_python_begins_under_its_own_number() -> None:
    named = FileSteps()
    told = [
        {"op": "change", "line": (7, 1)},
        {"op": "open"},
        {"op": "change", "line": (7, 2)},
        {"op": "line", "line": (7, 1)},
    ]
    events = [
        named(of_spark("batch=1/offsets", "0")),
        *(named(TraceEvent("sink.file", "before", "driver", detail=x)) for x in told),
    ]
    begun = [Point("batch=1/sink.file=7.line"), Point("batch=1/sink.file=7.line", occurrence=2)]
    assert events[-1].step == begun[0].step
    assert lines_of_changes(events, 1) == begun
    assert lines_of_changes(events, 0) == []
    assert lines_asked([*begun, Point("batch=1/commits")]) == [7]


def test_what_is_done_beside_a_batch_is_of_the_one_that_was_open_and_counted_apart() -> None:
    named = FileSteps()
    task = "concurrent/stage=7/p=0/a=0/task"
    done = {"op": "write", DURABLE: "0"}
    events = [
        TraceEvent(task, "before", "driver"),
        TraceEvent("batch=0/offsets", "after", "driver"),
        TraceEvent(task, "before", "driver"),
        TraceEvent("concurrent/sink.file", "before", "driver", detail=done),
        TraceEvent("sink.file", "before", "driver", detail=done),
        TraceEvent("batch=1/offsets", "after", "driver"),
        TraceEvent(task, "after", "driver"),
    ]
    assert [named(event).step for event in events] == [
        task,
        "batch=0/offsets",
        f"batch=0/{task}",
        "batch=0/concurrent/sink.file=1.write",
        "batch=0/sink.file=1.write",
        "batch=1/offsets",
        f"batch=0/{task}",
    ]


def test_what_is_done_beside_a_batch_is_no_step_in_which_two_runs_have_to_be_alike() -> None:
    events = [of_spark("batch=0/offsets", "0"), operation("open", "0"), operation("change", "1")]
    beside = TraceEvent("concurrent/sink.file", "before", "driver", detail={"op": "open"})
    plain, at_once = FileSteps(), FileSteps()
    alone = QueryRun(events=[plain(event) for event in events])
    found = QueryRun(events=[at_once(event) for event in (events[0], beside, *events[1:])])
    assert found.steps == alone.steps
    found.concurrent.add("a thread")
    assert found.steps == [step for step in alone.steps if "change" not in step]


def test_no_two_places_beside_a_batch_leave_the_same_and_no_executor_is_lost_there() -> None:
    steps = [f"batch=1/concurrent/stage=0/p={n}/a=0/task" for n in (0, 1)]
    places = [Point(step, "after") for step in steps]
    ends = Point("batch=1/commits", "after")
    run = QueryRun(crash_points=[CrashPoint(place, 1, "same") for place in (*places, ends)])
    why = Why(2, 4, 1)
    why.read_clean(run, [])
    lineage = why.lineage([], run)
    assert not any("concurrent" in id for folded in why.equivalence.folded for id in folded)
    assert {id for id in lineage.faults if "concurrent" in id} == {
        *(f"crash(driver, after {step})" for step in steps),
        *(f"storage(EIO, after {step})" for step in steps),
        f"storage(EIO, after {steps[0]}, each attempt)",
    }
