"""Which faults leave the same behind, and the lineage that is made of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries import counterexample
from bettong.harness.queries.faults.crash_points import DURABLE, CrashPoint, crash_points
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.faults.operations import LATER, OPERATIONAL_EVENTS
from bettong.harness.queries.faults.wire import WirePoint, request_digest
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.equivalence import CandidateFault, FaultEquivalence
from bettong.harness.queries.search.later_batches import later_batches
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.search.moments import one_of_many
from bettong.harness.queries.sense import keeps_in_sight
from bettong.harness.wire import Keys
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CLEAN
from bettong.lineage.trace import TraceEvent


def crash(step: str) -> DriverCrash:
    return DriverCrash(Point(step))


def test_of_equal_faults_the_one_at_sparks_log_is_run() -> None:
    equivalence = FaultEquivalence()
    task, commits = crash("batch=1/stage=0/p=0/a=0/task"), crash("batch=1/commits")
    kept = equivalence.of(
        CLEAN, [CandidateFault(task, "x", 1, 0), CandidateFault(commits, "x", 1, 1)]
    )
    assert [candidate.fault for candidate in kept] == [commits]
    assert equivalence.folded == {frozenset({task.id}): frozenset({commits.id})}


def test_a_second_fault_may_leave_what_the_first_one_left() -> None:
    equivalence = FaultEquivalence()
    first, second = crash("batch=1/commits"), crash("batch=1/offsets#2")
    equivalence.of(CLEAN, [CandidateFault(first, "x", 1, 0)])
    schedule = frozenset({first.id})
    kept = equivalence.of(
        schedule, [CandidateFault(second, "x", 1, 0), CandidateFault(second, "y", 1, 1)]
    )
    assert [candidate.left for candidate in kept] == ["y"]
    assert equivalence.folded == {schedule | {second.id}: schedule}


def test_what_is_known_of_equivalence_survives_in_the_log() -> None:
    equivalence, later = FaultEquivalence(), FaultEquivalence()
    equivalence.of(
        CLEAN, [CandidateFault(crash("a"), "x", 0, 0), CandidateFault(crash("b"), "x", 0, 1)]
    )
    log = [equivalence.news(), equivalence.news()]
    equivalence.of(CLEAN, [CandidateFault(crash("c"), "y", 0, 0)])
    log.append(equivalence.news())
    assert [len(line["chosen"]) for line in log] == [1, 0, 1]  # each line has what is new only
    for line in json.loads(json.dumps(log)):
        later.learn(line)
    assert later == equivalence


def moment(step: str, phase: str, durable: str) -> CrashPoint:
    return CrashPoint(Point(step, phase), 1, durable)  # type: ignore[arg-type]


def run(task_leaves: str) -> QueryRun:
    """Of one batch with one task, whose folder is "a" before the task and "c" when all is done."""
    task, half = "batch=0/stage=0/p=0/a=0/task", "batch=0/p=0/a=0/source.middle"
    reported = [
        ("batch=0/offsets", "before", ""),
        ("batch=0/offsets", "after", "a"),
        (task, "before", "a"),
        (half, "before", "a"),
        (task, "after", task_leaves),
        ("batch=0/commits", "before", "c"),
        ("batch=0/commits", "after", "d"),
    ]
    return QueryRun(crash_points=[moment(*one) for one in reported])


def hypotheses(task_leaves: str) -> set[str]:
    why = Why(1, 1, 2)
    seen = run(task_leaves)
    why.read_clean(seen, [])
    lineage = why.lineage([], seen)
    assert list(lineage.goals) == ["batch 0 is visible and recorded"]
    return set(lineage.faults) - {event.id for event in OPERATIONAL_EVENTS}


def test_a_task_that_leaves_nothing_can_fail_in_its_midst_or_at_its_end() -> None:
    """At its end its worker goes on, and remembers what it has done."""
    found = hypotheses(task_leaves="a")
    assert not any(id.startswith(("lost-executor", "crash-and-two")) for id in found)
    assert {id for id in found if id.startswith("storage")} == {
        "storage(EIO, before batch=0/p=0/a=0/source.middle)",
        "storage(EIO, after batch=0/stage=0/p=0/a=0/task)",
        "storage(EIO, after batch=0/stage=0/p=0/a=0/task, each attempt)",
    }
    assert "crash(driver, before batch=0/commits)" in found
    assert "crash(driver, before batch=0/p=0/a=0/source.middle)" not in found


def test_a_task_that_leaves_something_can_also_be_there_twice() -> None:
    found = hypotheses(task_leaves="b")
    assert "lost-executor(before batch=0/p=0/a=0/source.middle, goes on)" in found
    assert "lost-executor(after batch=0/stage=0/p=0/a=0/task)" in found
    assert "storage(EIO, after batch=0/stage=0/p=0/a=0/task)" in found
    assert "crash(driver, after batch=0/stage=0/p=0/a=0/task)" in found


def test_singles_begin_with_likely_ones_and_keep_apart_those_that_start_a_driver_anew() -> None:
    why = Why(1, 1, 2)
    seen = run("b")
    many = [moment(f"batch=0/sink.file={n}.remove", "before", f"x{n}") for n in range(9)]
    seen.crash_points = [*seen.crash_points[:-2], *many, *seen.crash_points[-2:]]
    why.read_clean(seen, [])
    why.lineage([], seen)
    order = [id for faults in why.likely() for id in faults]
    assert {frozenset({id}) for id in order} == why.known
    amid = [n for n, id in enumerate(order) if "sink.file" in id and id.startswith("crash")]
    assert order[amid[0]] == "crash(driver, before batch=0/sink.file=8.remove)"
    assert amid[0] < order.index("storage(EIO, before batch=0/sink.file=0.remove)")
    anew = [n for n, id in enumerate(order) if id.startswith(("lost-executor", "crash-and-two"))]
    assert len(anew) == 3
    assert all(later - earlier >= 6 for earlier, later in pairwise(anew))


@pytest.mark.parametrize("by_time", [True, False])
def test_a_replay_on_another_day_comes_early_where_what_is_put_out_goes_by_the_time(
    by_time: bool,
) -> None:
    why = Why(1, 1, 2)
    seen = run("b")
    why.read_clean(seen, [])
    why.by_time = by_time
    why.lineage([], seen)
    order = [id for faults in why.likely() for id in faults]
    first = ["crash(driver, before batch=0/commits)", LATER.id]
    assert (order[:2] == first) is by_time
    assert sorted(order) == sorted(set(order))


SILENCE = "silence(db/COMMIT=1)"


def test_silent_connections_come_last_when_it_is_known_who_waits_in_vain() -> None:
    why = Why(1, 1, 2)
    seen = run("a")
    hits = [parse_fault(id) for id in (SILENCE, "pause(server, before db/COMMIT=1)")]
    point = WirePoint(0, tuple((hit, hit.id) for hit in hits), 1)  # type: ignore[misc]
    why.read_clean(seen, [point])
    why.lineage([], seen)
    order = [id for faults in why.likely() for id in faults]
    assert {frozenset({id}) for id in order} == why.known
    assert order[-1] == SILENCE
    assert hits[1].id in order


def with_files(*operations: str) -> QueryRun:
    """Of one batch, in which a sink's own code does this with its files, or SQLite's."""
    seen = run("a")
    steps = [f"batch=0/sink.file={n}.{operation}" for n, operation in enumerate(operations, 1)]
    at = [moment(step, "before", f"b{n}") for n, step in enumerate(steps)]
    seen.crash_points = [*seen.crash_points[:-2], *at, *seen.crash_points[-2:]]
    return seen


def found_in(seen: QueryRun) -> set[str]:
    why = Why(1, 1, 2)
    why.read_clean(seen, [])
    return set(why.lineage([], seen).faults)


@pytest.mark.parametrize(
    ("operations", "at"),
    [
        (("open", "rename", "open", "rename"), {1, 2, 3, 4}),
        (("open", "write", "open", "write", "open"), {1, 5}),
        (("begin", "commit", "begin", "commit"), {1, 3}),
        (("insert", "insert", "insert", "link", "symlink"), {1, 3, 4, 5}),
        (("connect", "connect"), {1, 2}),
        (("write", "write", "remove"), {1, 3}),  # to what was opened once for all batches
        (("truncate", "write"), {1}),
        (("open", "lock", "write", "lock"), {1, 2}),
        (("lock", "open", "open", "rename"), {1, 2, 3, 4}),
        (("remove", "rmdir", "remove", "mkdir"), {1}),
        (("mkdir",), set[int]()),
    ],
)
def test_a_driver_is_held_where_it_begins_to_write_and_makes_visible(
    operations: tuple[str, ...], at: set[int]
) -> None:
    seen = with_files(*operations)
    held = {
        f"pause(driver, from batch=0/sink.file={n}.{operations[n - 1]} until after batch=0/commits)"
        for n in at
    }
    found = found_in(seen)
    assert {id for id in found if "sink.file" in id and "until after" in id} == held
    why = Why(1, 1, 2)
    why.read_clean(seen, [])
    why.lineage([], seen)
    order = [id for faults in why.likely() for id in faults]
    ranked = order.index("pause(driver, from batch=0/commits until after batch=0/commits)")
    assert all(order.index(id) > ranked for id in held)  # seldom what breaks a sink, and slow


@pytest.mark.parametrize("kind", ["write", "insert"])
def test_of_writes_that_follow_each_other_the_first_two_and_the_last_stand_for_all(
    kind: str,
) -> None:
    found = found_in(with_files("open", *[kind] * 6, "rename"))
    crashes = {f"crash(driver, before batch=0/sink.file={n}.{kind})" for n in range(2, 8)}
    kept = {f"crash(driver, before batch=0/sink.file={n}.{kind})" for n in (2, 3, 7)}
    assert found & crashes == kept


@pytest.mark.parametrize(
    ("on", "kept"),
    [
        ("begins marks row row row row ends", {0, 1, 2, 3, 5, 6}),
        ("row mark row mark row mark row mark", {0, 1, 2, 3, 6, 7}),
        ("a b c d e f g h", {0, 1, 7}),
    ],
)
def test_of_writes_to_several_files_those_on_each_stand_for_themselves(
    on: str, kept: set[int]
) -> None:
    """A marker among rows is no row: a crash right after it is one that no other stands for."""
    points = [
        CrashPoint(Point(f"batch=0/sink.file={n}.insert"), 1, f"b{n}", what)
        for n, what in enumerate(on.split(), 1)
    ]
    assert set(range(len(points))) - one_of_many(points) == kept


def test_of_files_that_are_made_for_each_row_the_first_two_and_the_last_stand_for_all() -> None:
    seen = with_files("mkdir", *("open", "write", "rename") * 6, "open", "write")
    found = found_in(seen)
    hit = {n for n in range(1, 22) if any(f"sink.file={n}." in id for id in found)}
    assert hit == {1, *range(2, 8), *range(17, 20), 20, 21}


def test_files_of_another_kind_are_not_taken_for_those_of_rows() -> None:
    ons = ["rows/?", "rows/?", "done/?"] + ["rows/?"] * 4
    points = [
        CrashPoint(Point(f"batch=0/sink.file={n}.rename"), 1, f"b{n}", on)
        for n, on in enumerate(ons)
    ]
    assert one_of_many(points) == {5}


@pytest.mark.parametrize(("tables", "kept"), [(8, set(range(16))), (40, {0, 1, 39, 40, 41, 79})])
def test_many_tables_that_each_batch_writes_to_are_no_rows(tables: int, kept: set[int]) -> None:
    points = [
        CrashPoint(Point(f"batch={batch}/sink.file={n}.insert"), 1, "", f"table {'x' * n}")
        for batch in (0, 1)
        for n in range(1, tables + 1)
    ]
    between = CrashPoint(Point("batch=0/commits"), 1, "")
    points.insert(tables, between)
    found = set(range(len(points))) - one_of_many(points)
    assert {place - (place > tables) for place in found - {tables}} == kept


def test_a_later_batch_is_hit_too() -> None:
    seen = QueryRun(
        crash_points=[
            moment(f"batch={batch}/{step}", phase, f"{batch} {step} {phase}")
            for batch in range(4)
            for step, phase in (
                ("offsets", "after"),
                ("sink.file=1.rename", "before"),
                *((("sink.file=2.remove", "before"),) if batch == 2 else ()),
                ("commits", "before"),
                ("commits", "after"),
            )
        ]
    )
    why = Why(2, 4, 2)
    why.tail = frozenset({2})
    why.read_clean(seen, [])
    found = set(why.lineage([], seen).faults)
    assert "crash(driver, before batch=2/sink.file=2.remove)" in found
    last = {id for id in found if "batch=3/" in id and id.startswith("crash")}
    assert last == {"crash(driver, before batch=3/commits)"}, "it is done again, and no more"


def test_another_driver_takes_over_where_later_batches_write_too_and_amid_a_batch() -> None:
    steps = ("sink.file=1.open", "sink.file=2.write", "sink.file=3.rename", "commits")
    seen = QueryRun(
        crash_points=[
            moment(f"batch={batch}/{step}", "before", f"{batch} {step}")
            for batch in range(4)
            for step in steps
        ]
    )
    why = Why(2, 4, 2)
    why.tail = frozenset({3})
    why.read_clean(seen, [])
    found = {id for id in why.lineage([], seen).faults if id.startswith("pause")}
    held = ("batch=1/sink.file=1.open", "batch=1/sink.file=3.rename")
    later = ("batch=3/sink.file=1.open", "batch=3/sink.file=3.rename")
    ended = {f"pause(driver, from {at} until after batch=3/commits)" for at in (*held, *later)}
    amid = {f"pause(driver, from {at} until batch=2/sink.file=3.rename)" for at in held}
    assert found == {
        *ended,
        *amid,
        f"pause(driver, from {held[0]} until {held[1]})",
        "pause(driver, from batch=1/commits until after batch=3/commits)",
    }


def test_a_driver_is_held_before_the_first_and_the_last_line_that_writes_past_python() -> None:
    seen = with_files("change", "change", "change")
    seen.events = [
        TraceEvent(f"batch=0/sink.file={n}.change", "before", "driver", detail=detail)
        for n, detail in enumerate(({"op": "change", "line": [line, 2]} for line in (7, 8, 9)), 1)
    ]
    held = {id for id in found_in(seen) if id.startswith("pause") and "sink.file" in id}
    assert held == {
        f"pause(driver, from batch=0/sink.file={line}.line#2 until after batch=0/commits)"
        for line in (7, 9)
    }


def test_a_driver_is_held_where_it_looks_at_files_which_is_no_place_to_die_at() -> None:
    told = (("open", "out/0.aside"), ("look", "out/0.jsonl"), ("look", "out/1.jsonl"))
    events = [
        TraceEvent(
            f"batch=0/sink.file={n}.{op}", "before", "driver", 1, detail={"op": op, "path": path}
        )
        for n, (op, path) in enumerate((*told, ("look", "out/*")), 1)
    ]
    seen = with_files("open")
    seen.events = [replace(event, detail={**event.detail, DURABLE: ""}) for event in events]
    ids = found_in(seen)
    assert {id for id in ids if ".look" in id} == {
        f"pause(driver, from batch=0/sink.file={n}.look until after batch=0/commits)"
        for n in (2, 4)  # that of another file of one kind stands for both
    }
    assert [p.point.step for p in crash_points(seen.events)] == ["batch=0/sink.file=1.open"]
    assert later_batches(seen, seen, 0) == {0}
    looked = replace(events[1], step="batch=1/sink.file=9.look")
    seen.events = [*events, looked]
    assert later_batches(seen, seen, 0) == {0}


def test_it_wakes_amid_a_later_batch_where_the_second_one_writes_nothing() -> None:
    steps = ("sink.file=1.open", "commits")
    seen = QueryRun(
        crash_points=[
            moment(f"batch={batch}/{step}", "before", f"{batch} {step}")
            for batch in range(4)
            for step in steps[batch < 2 :]
        ]
    )
    why = Why(2, 4, 2)
    why.tail = frozenset({2})
    why.read_clean(seen, [])
    woken = "pause(driver, from batch=2/sink.file=1.open until batch=3/sink.file=1.open)"
    assert woken in why.lineage([], seen).faults


def keys(own: str, content: str | None = "c") -> Keys:
    return Keys(content, 1, "l", 1, own)


def test_what_a_server_was_sent_is_distinguished_by_content_and_order() -> None:
    one, two = ("db", "INSERT", keys("1")), ("db", "INSERT", keys("2"))
    assert request_digest([one, two], "r1") == request_digest([one, two], "r2")
    assert request_digest([one, two], "r1") != request_digest([two, one], "r1")
    for label in ("BEGIN", "HEAD /rows", "channel.open"):
        assert request_digest([one, ("db", label, keys("3"))], "r1") == request_digest([one], "r1")
    for label in ("COMMIT", "GET /rows", "POST /rows", "GETDEL", "basic.get"):
        assert request_digest([one, ("db", label, keys("3"))], "r1") != request_digest([one], "r1")
    assert request_digest([one, ("db", "log in", None)], "r1") == request_digest([one], "r1")


def test_where_contents_are_not_known_runs_are_not_compared() -> None:
    opaque = [("db", "request", keys("request", None))]
    assert request_digest(opaque, "r1") != request_digest(opaque, "r2")


def test_a_counterexample_is_written_masked_and_read_back(tmp_path: Path) -> None:
    asked = Request("s.py:S", {"a": "b", "password": "hidden1"}, expect="at-least-once")
    path = counterexample.write(asked, ["empty(batch=2)"], tmp_path)
    assert counterexample.is_one(path)
    assert "hidden1" not in path.read_text()
    with pytest.raises(UsageError, match="password is masked in the file"):
        counterexample.read(path, {}, {})
    read = counterexample.read(path, {"password": "x"}, {"db": "h:1"})
    assert (read.target, read.only, read.expect) == (
        "s.py:S",
        ("empty(batch=2)",),
        "at-least-once",
    )
    assert (read.options, read.endpoints) == ({"a": "b", "password": "x"}, {"db": "h:1"})


def test_without_a_folder_the_command_names_the_faults() -> None:
    command = counterexample.command(Request("s.py:S", {"token": "hidden1"}), ["empty(batch=2)"])
    assert command == ("bettong check-sink s.py:S --option 'token=***' --only 'empty(batch=2)'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "bettong-sink-counterexample", "version": 2}', "is of version 2"),
        ('{"kind": "bettong-sink-counterexample", "version": 1}', "target is missing"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        counterexample.read(path, {}, {})


def plain(*points: CrashPoint) -> QueryRun:
    return QueryRun(crash_points=list(points), drained=True)


def test_where_it_is_not_seen_what_is_kept_no_faults_are_equal() -> None:
    moments = [
        CrashPoint(Point(f"batch=1/{step}", phase), 1, "the same")
        for step, phase in (("offsets", "after"), ("commits", "before"))
    ]
    seen, unseen = Why(2, 4, 1), Why(2, 4, 1)
    unseen.seen = False
    for why in (seen, unseen):
        why.lineage([], plain(*moments))
    crashes = {frozenset({DriverCrash(moment.point).id}) for moment in moments}
    assert len(crashes & seen.known) == 1
    assert crashes <= unseen.known
    unseen.read_clean(plain(*moments), [])
    assert unseen.in_tasks


@pytest.mark.parametrize(("before_commits", "in_sight"), [("x", False), ("y", True)])
def test_a_batch_that_changes_nothing_has_its_rows_elsewhere(
    before_commits: str, in_sight: bool
) -> None:
    run = plain(
        CrashPoint(Point("batch=0/offsets", "after"), 1, "x"),
        CrashPoint(Point("batch=0/commits"), 1, before_commits),
    )
    assert keeps_in_sight(run) is in_sight
