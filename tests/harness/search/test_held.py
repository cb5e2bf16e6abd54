"""What the disks of servers hold, as far as a trace tells, and what is alike by that."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pytest

from bettong.engine import steps
from bettong.engine.storage.disk import OS_DISK
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, PowerCut, Storage
from bettong.harness.faults.point import Point
from bettong.harness.faults.registry import to_entry
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.durable import NotDurable
from bettong.harness.search.equivalence import FaultEquivalence, recovery_of
from bettong.harness.search.occurrences import read_occurrences
from bettong.harness.search.recovery import CleanRecords
from bettong.harness.search.trace_lineage import lineage_of
from bettong.lineage.faults import STORAGE
from bettong.lineage.trace import TraceEvent, read_trace

Call = list[object]
F = TypeVar("F", bound=Fault)
Calls = Sequence[Call]

OPEN, PREPARE = "receiver.open/epoch=1", "receiver.prepare/batch=0/p=0/a=0"
COMMIT, START = "receiver.commit/batch=0", "receiver.start"
OPENED: Call = [1, "open", "1.0", "log", 0]
SYNC: Call = [1, "sync", "1.0", 0]
FAILED: Call = [1, "sync failed", "1.0", 0]
NAMES: Call = [1, "sync directory", ".", 0]


def append(text: bytes) -> Call:
    return [1, "append", "1.0", crc32(text), len(text)]


def cut(size: int) -> Call:
    return [1, "truncate", "1.0", size, 0]


def rewrite(offset: int, size: int) -> Call:
    return [1, "rewrite", offset, size, "log", size]


WHOLE: Calls = [OPENED, NAMES, append(b"one"), SYNC]


def taken(
    step: str, calls: Calls = (), incarnation: int = 1, node: str = "receiver"
) -> list[TraceEvent]:
    detail = {"disk": {"after": f"before {step}", "calls": [*calls], "more": 0}}
    return [
        TraceEvent(step, "before", node, incarnation, ("epoch=1/sink.open",)),
        TraceEvent(step, "after", node, incarnation, detail=detail),
    ]


def fired(fault: Fault) -> TraceEvent:
    return TraceEvent(f"fault/{fault.id}", "after", "receiver", detail={"fault": to_entry(fault)})


def held(events: Sequence[TraceEvent]) -> str:
    """By the end of the last step."""
    reading = read_occurrences(events)
    return NotDurable(reading).held.get(reading.occurrences[-1].ended or -1, "")


@pytest.mark.parametrize(
    ("calls", "alike"),
    [
        (WHOLE, True),
        ([OPENED, NAMES, append(b"o"), cut(0), append(b"one"), SYNC], True),
        ([*WHOLE, FAILED, SYNC], True),  # there was nothing that it had to write
        ([OPENED, NAMES, append(b"one"), FAILED, rewrite(0, 3), SYNC], True),
        ([OPENED, NAMES, append(b"two"), SYNC], False),
        ([OPENED, NAMES, append(b"one")], False),  # a power cut takes it away
        ([OPENED, append(b"one"), SYNC], False),  # or its name
        ([OPENED, NAMES, append(b"one"), FAILED, SYNC], False),  # the second sync writes nothing
        ([*WHOLE, append(b"one"), SYNC], False),
        ([*WHOLE, [1, "rename", "log", "other", 0], NAMES], False),
        ([*WHOLE, [1, "remove", "log", 0], NAMES], False),
    ],
)
def test_disks_hold_the_same_with_the_same_bytes_as_durable(calls: Calls, alike: bool) -> None:
    assert (held(taken(OPEN, calls)) == held(taken(OPEN, WHOLE))) is alike
    assert held(taken(OPEN, WHOLE))


def test_what_no_sync_will_write_any_more_is_no_write_that_waits_for_one() -> None:
    waits: Calls = [OPENED, NAMES, append(b"one")]
    assert held(taken(OPEN, [*waits, FAILED])) != held(taken(OPEN, waits))


def test_what_a_power_cut_has_left_is_not_known() -> None:
    cut_off = PowerCut("receiver", Point(OPEN), 0, "nothing")
    events = [*taken(OPEN, WHOLE), fired(cut_off), *taken(COMMIT, incarnation=2)]
    assert held(events[:2])
    assert not held(events)


def test_of_other_nodes_than_servers_it_is_not_known() -> None:
    assert not held(taken("batch=0/p=0/a=0/state.write", WHOLE, node="driver"))


def test_bytes_are_told_by_their_checksum(tmp_path: Path) -> None:
    """As a real disk and a real trace have it."""

    def written(text: bytes) -> str:
        folder = tmp_path / text.decode()
        (folder / "disk").mkdir(parents=True)
        trace, before = folder / "trace", steps.installed()
        try:
            steps.install(
                steps.Instrumentation(node="receiver", trace=str(trace), disk=str(folder / "disk"))
            )
            with steps.step(OPEN, causes=["epoch=1/sink.open"]):
                file = OS_DISK.append_to(folder / "log")
                file.write(text)
                file.sync()
                file.close()
        finally:
            steps.install(before)
        return held(list(read_trace(trace)))

    assert written(b"one") != written(b"two")


def test_a_sync_that_fails_is_told(tmp_path: Path) -> None:
    """What it was to write, no later one does."""
    before, trace = steps.installed(), tmp_path / "trace"
    try:
        steps.install(steps.Instrumentation(node="receiver", trace=str(trace)))
        with steps.step(OPEN, causes=["epoch=1/sink.open"]):
            file = OS_DISK.append_to(tmp_path / "log")
            edge = steps.current_edge()
            assert edge is not None
            edge.orders = steps.Orders(call=2, errno=errno.EIO)
            with pytest.raises(OSError, match="error"):
                file.sync()
            file.sync()
            file.close()
    finally:
        steps.install(before)
    (told,) = read_occurrences(read_trace(trace)).disk
    assert [call[:2] for call in told.calls] == [[1, "open"], [2, "sync failed"], [3, "sync"]]
    assert [call.number for call in told.of.calls] == [1, 3], "it was not made"


def test_a_disk_is_as_ever_with_what_was_written_again() -> None:
    """A write that a full disk has refused, and that went well when it was asked for again, leaves
    the next start of the receiver what it always finds."""
    full = Storage(Point(PREPARE), "ENOSPC", 1, "receiver")

    def run(*calls: Calls) -> list[TraceEvent]:
        first, *more = (taken(PREPARE, c) for c in calls)
        hit = [first[0], fired(full), replace(first[1], phase="failed")] if more else first
        return [*hit, *(event for events in more for event in events), *taken(COMMIT)]

    clean = run(WHOLE)
    reading = read_occurrences(clean)
    records = CleanRecords.of(reading, NotDurable(reading).held)
    as_ever = f"disk(receiver, before {COMMIT}) as ever"
    torn: Calls = [OPENED, NAMES, append(b"o"), cut(0)]
    for again, alike in (
        ([append(b"one"), SYNC], True),
        ([append(b"two"), SYNC], False),
        ([append(b"one")], False),
    ):
        found = lineage_of(run(torn, again), kinds={STORAGE}, clean=records)
        assert (as_ever in found.lineage.graph) is alike
        unseen = lineage_of(
            run(torn, again), kinds={STORAGE}, clean=records, opaque=frozenset({"receiver"})
        )
        assert as_ever not in unseen.lineage.graph, "it may write what no step tells of"


def learn(
    equivalence: FaultEquivalence, done: Calls | None, again: Calls, rest: Sequence[str] = ()
) -> Crash:
    """The receiver is killed before it has prepared a batch, or when it has, starts, and is asked
    for it again."""
    at = PREPARE if done is None else COMMIT
    crash = Crash("receiver", Point(at))
    events = [*taken(OPEN), *(taken(PREPARE, done) if done is not None else ()), *taken(at)[:1]]
    events += [fired(crash), TraceEvent("node.start/receiver", "after", "receiver", 2)]
    for step, calls in ((START, ()), (PREPARE, again), (COMMIT, ()), *((s, ()) for s in rest)):
        events += taken(step, calls, 2)
    return shown(equivalence, crash, events)


def shown(equivalence: FaultEquivalence, fault: F, events: Sequence[TraceEvent]) -> F:
    reading = read_occurrences(events)
    recovery = recovery_of(
        fault, reading, lambda step: StepId.parse(step).batch, NotDurable(reading).held
    )
    assert recovery is not None
    equivalence.faults[fault.id] = fault
    equivalence.learn(fault.id, recovery)
    return fault


@pytest.mark.parametrize(
    ("done", "again", "rest", "alike"),
    [
        ((), WHOLE, (), True),
        (WHOLE, (), (), False),  # it finds what it is asked for done, and may remember that
        ([OPENED, NAMES], [append(b"one"), SYNC], (), False),  # it has begun on something else
        ((), [*WHOLE, append(b"one"), SYNC], (), False),  # the disk holds something else
        ((), WHOLE, ["receiver.prepare/batch=1/p=0/a=0"], False),  # it goes on in another way
    ],
)
def test_a_second_fault_of_a_server_is_tried_behind_one_that_led_to_the_same_state(
    done: Calls, again: Calls, rest: Sequence[str], alike: bool
) -> None:
    equivalence = FaultEquivalence()
    one = learn(equivalence, None, WHOLE)
    two = learn(equivalence, done, again, rest)
    assert equivalence.classes() == 2, "other things were durable when they fired"
    refused = Storage(Point(COMMIT), "EIO", 1, "receiver")
    later = refused.moved(Point(COMMIT, "before", 2))
    equivalence.faults |= {fault.id: fault for fault in (refused, later)}
    asked, run = frozenset({two.id, later.id}), frozenset({one.id, refused.id})
    assert equivalence.canonical(asked) == (run if alike else asked)
    assert equivalence.canonical(run) == run
    assert (asked in equivalence.alike(run)) is alike


def test_a_life_with_other_steps_is_another_state() -> None:
    equivalence = FaultEquivalence()
    learn(equivalence, None, WHOLE)
    other = Crash("receiver", Point(COMMIT))
    events = [*taken(OPEN), *taken(PREPARE, WHOLE), *taken(COMMIT)[:1], fired(other)]
    events.append(TraceEvent("node.start/receiver", "after", "receiver", 2))
    events += [event for step in (START, COMMIT) for event in taken(step, (), 2)]
    shown(equivalence, other, events)
    refused = Storage(Point(COMMIT, "before", 2), "EIO", 1, "receiver")
    first = refused.moved(Point(COMMIT))
    equivalence.faults |= {fault.id: fault for fault in (refused, first)}
    asked = frozenset({other.id, refused.id})
    assert equivalence.canonical(asked) == asked


@pytest.mark.parametrize(("kind", "alike"), [("crash", True), ("storage", False)])
def test_what_a_server_remembers_of_a_refused_call_only_its_death_takes_away(
    kind: str, alike: bool
) -> None:
    equivalence = FaultEquivalence()
    refused = [Storage(Point(PREPARE), "EIO", call, "receiver") for call in (3, 4)]
    for fault in refused:
        begun, ended = taken(PREPARE)
        again = [*taken(PREPARE, WHOLE), *taken(COMMIT)]
        events = [*taken(OPEN), begun, fired(fault), replace(ended, phase="failed"), *again]
        shown(equivalence, fault, events)
    at = Point(COMMIT)
    second = Crash("receiver", at) if kind == "crash" else Storage(at, "EIO", 1, "receiver")
    equivalence.faults[second.id] = second
    one, two = (frozenset({fault.id, second.id}) for fault in refused)
    assert equivalence.canonical(two) == (one if alike else two)
