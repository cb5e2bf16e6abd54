"""Which batches after the window do what none before them does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bettong.harness.queries.faults.crash_points import DURABLE, crash_points
from bettong.harness.queries.faults.kinds import refused, refused_once
from bettong.harness.queries.faults.operations import LONGER
from bettong.harness.queries.faults.wire import CLOCK
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.later_batches import (
    batches_of_more,
    earlier_batches,
    later_batches,
)
from bettong.harness.queries.search.lineage import Why
from bettong.harness.wire import Keys, Recording, Request
from bettong.harness.wire.conversation import Conversation
from bettong.lineage.trace import TraceEvent

_KEYS = Keys("c", 1, "l", 1, "c")


def run(
    files: Sequence[tuple[int, str, str]] = (),
    asked: Sequence[tuple[int, str, str]] = (),
    batches: int = 4,
) -> QueryRun:
    """Of four batches; what each does with files (operation, path) and asks (label, detail)."""
    events, requests = [], []
    for batch in range(batches):
        at = {CLOCK: 100 * batch, DURABLE: f"{batch}"}
        events.append(TraceEvent(f"batch={batch}/offsets", "after", "driver", detail=at))
        of_batch = [(operation, path) for n, operation, path in files if n == batch]
        for number, (operation, path) in enumerate(of_batch, 1):
            step = f"batch={batch}/sink.file={number}.{operation}"
            detail = {**at, DURABLE: f"{batch} {number}", "path": path}
            events.append(TraceEvent(step, "before", "driver", detail=detail))
    for index, (batch, label, detail_of) in enumerate(asked, 1):
        order = 100 * batch + index
        requests.append(Request("db", 1, index, order, label, detail_of, 9, 9, _KEYS))
    talk = Conversation("db", 1, "test", tuple(requests), (), 1, 1, None)
    return QueryRun(events=events, crash_points=crash_points(events), recording=Recording((talk,)))


def found(
    files: Sequence[tuple[int, str, str]] = (), asked: Sequence[tuple[int, str, str]] = ()
) -> set[int]:
    one = run(files, asked)
    return set(later_batches(one, one, 2))


def earlier(
    files: Sequence[tuple[int, str, str]] = (), asked: Sequence[tuple[int, str, str]] = ()
) -> set[int]:
    one = run(files, asked)
    return set(earlier_batches(one, one, 2))


PARTS = [(batch, "open", f"out/part-{batch}-f00d.json") for batch in range(4)]
INSERTS = [(batch, "INSERT", f"INSERT INTO rows VALUES ({batch})") for batch in range(4)]


def test_what_every_batch_does_is_nothing_new() -> None:
    assert found(PARTS, INSERTS) == set()


def test_a_first_batch_may_do_what_the_next_one_does_not() -> None:
    assert earlier(PARTS, INSERTS) == set()
    assert earlier([(0, "remove", "out/old.json"), *PARTS]) == {0}
    assert earlier([(0, "open", "out/part-0-f00d.json"), *PARTS]) == {0}  # once more
    assert earlier(asked=[(0, "TRUNCATE", "TRUNCATE rows"), *INSERTS]) == {0}


def test_a_folder_that_is_made_once_is_no_work_of_its_own() -> None:
    assert earlier([(0, "mkdir", "out"), *PARTS]) == set()


def test_what_only_the_window_s_last_batch_does_is_no_work_of_those_before_it() -> None:
    assert earlier([*PARTS, (1, "remove", "out/part-0-f00d.json")]) == set()


def test_in_a_batch_that_does_what_the_next_one_does_not_a_driver_stands_still() -> None:
    one = run([(0, "remove", "out/old.json"), *PARTS])
    why = Why(2, 4, 1)
    why.head = earlier_batches(one, one, 2)
    why.read_clean(one, [])
    why.lineage([], one)
    held = {id for faults in why.known for id in faults if id.startswith("pause(")}
    assert "pause(driver, from batch=0/sink.file=2.open until after batch=3/commits)" in held


def test_a_file_of_another_name_is_new() -> None:
    assert found([*PARTS, (2, "open", "out/compact-2.json")]) == {2}
    known = (0, "open", "out/compact-0.json")
    assert found([known, *PARTS, (2, "open", "out/compact-2.json")]) == set()


def test_so_is_a_kind_of_operation_or_one_more_of_them() -> None:
    assert found([*PARTS, (3, "remove", "out/part-0-f00d.json")]) == {3}
    assert found([*PARTS, (2, "open", "out/part-2-f00d.json")]) == {2}


def test_so_is_a_stage() -> None:
    def staged(*stages: int) -> QueryRun:
        """Of four batches, each with so many stages."""
        tasks = ((batch, stage) for batch, many in enumerate(stages) for stage in range(many))
        steps = (f"batch={batch}/stage={stage}/p=0/a=0/task" for batch, stage in tasks)
        return QueryRun(events=[TraceEvent(step, "before", "driver") for step in steps])

    more = staged(1, 1, 1, 2)
    assert later_batches(more, more, 2) == {3}
    assert later_batches(more, staged(1, 1, 1, 1), 2) == frozenset()


@pytest.mark.parametrize(
    ("label", "detail", "batches"),
    [
        ("DELETE", "DELETE FROM rows", {2}),
        ("INSERT", "INSERT INTO sums SELECT 7 FROM rows", {2}),
        ("INSERT", "INSERT INTO rows VALUES (99)", set()),
        ("HEAD /rows", "", set()),  # it changes nothing
    ],
)
def test_so_is_a_request_that_may_change_something(
    label: str, detail: str, batches: set[int]
) -> None:
    assert found(asked=[*INSERTS, (2, label, detail)]) == batches


def test_what_is_made_at_random_tells_nothing() -> None:
    def made(word: str) -> QueryRun:
        names = [(batch, "open", f"tmp-{word * (batch + 1)}") for batch in range(4)]
        return run([*PARTS, *names], [(batch, "SET", f"SET {name}") for batch, _, name in names])

    assert later_batches(made("q"), made("z"), 2) == frozenset()


def test_neither_do_requests_of_which_no_two_are_alike() -> None:
    words = ["ape", "bat", "cow", "dog", "emu", "fox", "gnu", "hen"]
    assert found(asked=[(n // 2, "SET", f"SET {word}") for n, word in enumerate(words)]) == set()


def test_an_endpoint_that_only_later_batches_ask_is_refused_there() -> None:
    def refused_in(*batches: int) -> set[str]:
        one = run(asked=[(batch, "INSERT", "INSERT INTO rows VALUES (1)") for batch in batches])
        why = Why(2, 4, 1)
        why.tail = later_batches(one, one, 2)
        why.read_clean(one, [])
        return {id for id in why.lineage([], one).faults if "db" in id}

    assert refused_in(2, 3) == {refused("db", 2).id, refused_once("db", 2).id}
    assert refused_in(0, 1, 2) == {refused("db", 1).id, refused_once("db", 1).id}


def test_what_only_tasks_of_later_batches_leave_is_lost_there_with_their_executor() -> None:
    def moment(step: str, phase: str, durable: str) -> TraceEvent:
        return TraceEvent(step, phase, "driver", detail={DURABLE: durable})  # type: ignore[arg-type]

    events = []
    for batch in range(4):
        task = f"batch={batch}/stage=0/p=0/a=0/task"
        left = "more" if batch == 3 else "nothing"
        events += [moment(task, "before", "nothing"), moment(task, "after", left)]
    one = QueryRun(events=events, crash_points=crash_points(events))
    why = Why(2, 4, 1)
    why.tail = frozenset({3})
    why.read_clean(one, [])
    found = set(why.lineage([], one).faults)
    lost = {id for id in found if id.startswith("lost-executor")}
    assert lost == {"lost-executor(after batch=3/stage=0/p=0/a=0/task)"}
    failed = {f"storage(EIO, after batch={n}/stage=0/p=0/a=0/task, each attempt)" for n in (1, 3)}
    assert failed == {id for id in found if id.endswith("each attempt)")}


def test_every_batch_is_done_again_once_though_it_does_nothing_new() -> None:
    """Its rows may be of a kind that no batch before has."""
    events = [
        TraceEvent(f"batch={batch}/commits", phase, "driver", detail={DURABLE: f"{batch} {phase}"})
        for batch in range(4)
        for phase in ("before", "after")
    ]
    one = QueryRun(events=events, crash_points=crash_points(events))
    why = Why(2, 4, 1)
    why.read_clean(one, [])
    found = {id for id in why.lineage([], one).faults if id.startswith("crash(")}
    before = {f"crash(driver, before batch={batch}/commits)" for batch in range(4)}
    assert found - before == {f"crash(driver, after batch={batch}/commits)" for batch in (0, 1)}
    assert before <= found


def test_the_last_call_of_a_batch_that_can_fail_fails_each_time() -> None:
    one = run([(batch, operation, "db") for batch in range(4) for operation in ("begin", "commit")])
    why = Why(2, 4, 1)
    why.read_clean(one, [])
    failing = {id for id in why.lineage([], one).faults if id.endswith("each time)")}
    assert failing == {"storage(EIO, before batch=1/sink.file=2.commit, each time)"}


def in_twelve(
    files: Sequence[tuple[int, str, str]], asked: Sequence[tuple[int, str, str]] = ()
) -> QueryRun:
    """A run of twelve batches, of which the eleventh is done again after a crash."""
    first = run(files, asked, batches=12)
    again = [
        TraceEvent("batch=10/sink.file=1.look", "before", "driver", 2, detail={"path": "out/x"}),
        TraceEvent("batch=10/sink.file=2.remove", "before", "driver", 2, detail={"path": "a.tmp"}),
    ]
    last = [e for e in first.events if e.step.startswith("batch=11/")]
    events = [e for e in first.events if e not in last]
    events += [*again, *(replace(e, incarnation=2) for e in last)]
    return replace(first, events=events, crash_points=crash_points(events))


IN_TWELVE = [(batch, "open", f"out/part-{batch}-f00d.json") for batch in range(12)]
ALL_INSERTS = [(batch, "INSERT", f"INSERT INTO rows VALUES ({batch})") for batch in range(12)]


@pytest.mark.parametrize(
    ("files", "asked", "batches"),
    [
        ([], [], set()),
        ([(9, "remove", "out/part-1-f00d.json")], [], {9}),
        ([(11, "remove", "out/part-1-f00d.json")], [], {11}),
        ([(6, "open", "out/joined.json")], [], {6}),
        ([], [(7, "DELETE", "DELETE FROM rows")], {7}),
    ],
)
def test_of_twelve_batches_some_do_what_none_of_four_does(
    files: list[tuple[int, str, str]], asked: list[tuple[int, str, str]], batches: set[int]
) -> None:
    twelve = in_twelve([*IN_TWELVE, *files], [*ALL_INSERTS, *asked])
    four = run(PARTS, INSERTS)
    assert batches_of_more(twelve, four, four) == batches


def test_names_that_are_made_at_random_are_not_new_in_twelve_batches() -> None:
    one, other = (run([(n, "open", f"tmp-{word * (n + 1)}") for n in range(4)]) for word in "qz")
    twelve = in_twelve([(n, "open", f"tmp-{'y' * (n + 1)}") for n in range(12)])
    assert batches_of_more(twelve, one, other) == frozenset()


def test_the_driver_dies_amid_what_only_twelve_batches_do() -> None:
    why = Why(2, 4, 2)
    four = replace(run(PARTS), starts=[0])
    why.read_both(four, four, ())
    joined = [(9, "remove", f"out/part-{n}-f00d.json") for n in range(2)]
    why.lineage([LONGER], in_twelve([*IN_TWELVE, *joined]))
    amid = {id for faults in why.known for id in faults if LONGER.id in faults} - {LONGER.id}
    assert "crash(driver, before batch=9/sink.file=3.remove)" in amid
    assert all("batch=9/" in id and id.startswith("crash(") for id in amid)
