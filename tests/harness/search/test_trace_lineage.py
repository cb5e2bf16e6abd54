"""Lineage of real runs, from their traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bettong.harness.faults.kinds import Crash, Omit, OmitReply, PowerCut, Storage
from bettong.harness.faults.point import Point
from bettong.harness.faults.registry import to_entry
from bettong.harness.search.occurrences import read_occurrences
from bettong.harness.search.recovery import CleanRecords
from bettong.harness.search.trace_lineage import RunLineage, lineage_of, make_up
from bettong.lineage.faults import (
    CRASH,
    DUPLICATE,
    LOSS,
    PARTITION,
    PAUSE,
    STORAGE,
    WRITE,
    Bounds,
    FaultSet,
)
from bettong.lineage.graph import Lineage
from bettong.lineage.search.hypotheses import Hypotheses
from bettong.lineage.trace import MessageRange, Phase, TraceEvent

PLAN, OFFSETS, COMMIT = "batch=0/source.plan", "batch=0/offsets", "batch=0/sink.commit"
SERVED, COMMITS, OPEN = "receiver.commit/batch=0", "batch=0/commits", "epoch=1/sink.open"
LINK = "driver->receiver"
SEND, KEPT, ACK = "sender.send/lines/7", "gateway.append/lines/7", "gateway.ack/lines/7"
RELEASED = "gateway.release/lines/8"
SENDING, ACKING = "sender->gateway", "gateway->sender"
STRIKING = {
    fault.id: fault
    for fault in (
        Crash("driver", Point(COMMIT)),
        Omit(LINK, Point(PLAN)),
        Omit(SENDING, Point(SEND)),
        Omit(ACKING, Point(ACK)),
        OmitReply(LINK, Point(COMMIT)),
        Storage(Point(OFFSETS), "ENOSPC"),
        Storage(Point(KEPT), "ENOSPC", 1, "gateway"),
        Storage(Point(KEPT), "EIO", 1, "gateway"),
    )
}


class Trace:
    """A trace written by hand."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        self.incarnation = 1

    def begin(self, step: str, *causes: str, node: str = "driver", link: str | None = None) -> None:
        n = self.incarnation if node == "driver" else 1
        self.events.append(TraceEvent(step, "before", node, n, causes, link=link))

    def end(self, step: str, *causes: str, node: str = "driver", link: str | None = None) -> None:
        n = self.incarnation if node == "driver" else 1
        carries = (MessageRange("lines", 0, 8),) if step == PLAN else ()
        self.events.append(TraceEvent(step, "after", node, n, causes, carries, link))

    def fail(self, step: str) -> None:
        self.events.append(TraceEvent(step, "failed", "driver", self.incarnation))

    def whole(self, step: str, *causes: str) -> None:
        self.begin(step, *causes)
        self.end(step, *causes)

    def committed(self) -> None:
        """The driver asks the receiver to commit, and is answered."""
        self.begin(COMMIT, OFFSETS, link=LINK)
        self.begin(SERVED, COMMIT, node="receiver")
        self.end(SERVED, COMMIT, node="receiver")
        self.end(COMMIT, OFFSETS, SERVED, link=LINK)

    def injects(self, fault: str, node: str) -> None:
        detail = {"fault": to_entry(STRIKING[fault])}
        self.events.append(TraceEvent(f"fault/{fault}", "after", node, detail=detail))

    def restart(self) -> None:
        self.incarnation += 1
        self.events.append(TraceEvent("node.start/driver", "after", "driver", self.incarnation))

    def dies_before_the_commit(self, fault: str) -> None:
        """The driver is killed before it asks for the commit, and comes back."""
        self.begin(COMMIT, OFFSETS, link=LINK)
        self.injects(fault, "driver")
        self.restart()
        self.whole("epoch=2/sink.open")


def clean() -> Trace:
    trace = Trace()
    trace.whole(OPEN)
    trace.whole(PLAN)
    trace.whole(OFFSETS)
    trace.committed()
    trace.whole(COMMITS)
    return trace


def replayed(fault: str) -> Trace:
    """The driver is killed before it asks for the commit, and does the batch again."""
    trace = Trace()
    trace.whole(OPEN)
    trace.whole(PLAN)
    trace.whole(OFFSETS)
    trace.dies_before_the_commit(fault)
    trace.committed()
    trace.whole(COMMITS)
    return trace


def hypotheses(
    lineage: Lineage, crashes: int, losses: int, also: Sequence[Lineage] = ()
) -> list[FaultSet]:
    """All minimal hypotheses about the goals of a clean run, given what other runs showed."""
    found = []
    with Hypotheses(lineage, Bounds({"crash": crashes, "loss": losses})) as search:
        for other in also:
            search.extend(other)
        while (chosen := search.smallest()) is not None:
            found.append(chosen)
            search.exclude_supersets(chosen)
    return found


def test_every_leaf_of_a_clean_run_is_a_hypothesis_of_its_own() -> None:
    run = lineage_of(clean().events)
    assert not run.reading.unread
    found = hypotheses(run.lineage, 0, 1)
    assert set(found) == {
        frozenset({f"omit({LINK}, {COMMIT})"}),
        frozenset({f"omit-reply({LINK}, {COMMIT})"}),
    }
    crashes = {id for s in hypotheses(run.lineage, 1, 0) for id in s}
    assert f"crash(driver, before {COMMIT})" in crashes
    assert f"crash(driver, after {COMMIT})" in crashes  # it suppresses the replay: commits
    assert f"crash(receiver, before {SERVED})" in crashes
    assert f"crash(driver, after {COMMITS})" not in crashes
    assert crashes <= run.faults.keys()


def test_recovery_is_an_alternative_that_is_attacked_together_with_what_made_it_necessary() -> None:
    first = f"crash(driver, before {COMMIT})"
    run = lineage_of(clean().events)
    found = hypotheses(run.lineage, 1, 1, [lineage_of(replayed(first).events).lineage])
    assert frozenset({first}) not in found
    assert frozenset({first, f"omit({LINK}, {COMMIT}#2)"}) in found
    assert frozenset({first, f"omit-reply({LINK}, {COMMIT}#2)"}) in found
    # The replay is no help against a crash that it was not seen to follow.
    assert frozenset({f"crash(driver, before {PLAN})"}) in found


def test_faults_are_placed_in_the_first_batches_only() -> None:
    trace = clean()
    trace.whole("batch=1/source.plan")
    trace.whole("batch=1/offsets")
    assert any("batch=1/" in id for id in lineage_of(trace.events).faults)
    assert not any("batch=1/" in id for id in lineage_of(trace.events, batches=1).faults)
    assert lineage_of(trace.events, batches=1).faults


def test_faults_are_placed_where_a_sender_connects_whichever_batch_it_sends_for() -> None:
    connect = "sender.connect/lines"
    trace = Trace()
    trace.begin(connect, node="sender", link=SENDING)
    trace.end(connect, node="sender", link=SENDING)
    trace.begin(SEND, connect, node="sender", link=SENDING)
    trace.end(SEND, connect, node="sender", link=SENDING)
    trace.whole(OPEN)
    trace.whole(PLAN)
    run = lineage_of(trace.events, 1, kinds={CRASH, LOSS, DUPLICATE, PAUSE})
    lost = {id for s in hypotheses(run.lineage, 1, 1) for id in s}
    assert {f"omit({SENDING}, {connect})", f"omit-reply({SENDING}, {connect})"} <= lost
    assert f"silence({SENDING}, {connect})" in run.faults
    assert f"duplicate({SENDING}, {SEND})" in run.faults
    assert f"duplicate({SENDING}, {connect})" not in run.faults


def test_faults_are_placed_where_a_server_starts_and_where_it_makes_room_for_a_client() -> None:
    made = ("gateway.start", "gateway.create/lines", "receiver.start", "receiver.create/sums")
    trace = Trace()
    for step in made:
        node, calls = step.partition(".")[0], [[1, "open", "1.0", "f", 0], [2, "append", "1.0", 9]]
        trace.begin(step, node=node)
        detail = {"disk": {"after": f"before {step}", "calls": calls, "more": 0}}
        trace.events.append(TraceEvent(step, "after", node, detail=detail))
    trace.whole(OPEN)
    trace.whole(PLAN)
    run = lineage_of(trace.events, 1, kinds={CRASH, STORAGE, WRITE, PAUSE})
    assert not run.reading.unread
    for step in made:
        node = step.partition(".")[0]
        for id in (
            f"crash({node}, before {step})",
            f"crash({node}, after {step})",
            f"storage(ENOSPC, {node}, before {step}, call 2)",
        ):
            assert run.faults[id].counts_as({CRASH, STORAGE, WRITE}) in (CRASH, WRITE)
    still = {fault.points[0].step for fault in run.faults.values() if fault.bound == PAUSE}
    assert not still & {"gateway.start", "receiver.start"}  # all wait for those by themselves
    assert "gateway.create/lines" in still


def test_what_is_read_may_not_be_readable_the_first_time_and_the_last() -> None:
    trace = Trace()
    trace.whole(OPEN)
    trace.begin(PLAN)
    trace.end(PLAN)
    detail = {"disk": {"after": f"after {PLAN}", "calls": [], "reads": list("abbba"), "more": 0}}
    trace.events.append(TraceEvent(OFFSETS, "before", "driver", detail=detail))
    trace.end(OFFSETS)
    run = lineage_of(trace.events, kinds={STORAGE})
    found = [id for id in run.faults if "read" in id]
    assert found == [f"storage(EIO, driver, after {PLAN}, read {n})" for n in (1, 2, 4, 5)]


def test_what_a_task_of_spark_reads_is_chance() -> None:
    task, within = "batch=0/stage=0/p=0/a=0/task", "batch=0/p=0/a=0/source.read"
    trace = Trace()
    trace.whole(OPEN)
    trace.whole(PLAN)
    trace.whole(OFFSETS)
    trace.begin(task)
    trace.begin(within)
    detail = {"disk": {"after": f"before {within}", "calls": [], "reads": ["f"], "more": 0}}
    trace.events.append(TraceEvent(within, "after", "driver", detail=detail))
    trace.end(task)
    run = lineage_of(trace.events, kinds={STORAGE})
    assert run.faults and not [id for id in run.faults if "read 1" in id]


def test_what_a_server_cannot_read_is_tried_with_its_crash_where_it_starts_after_one() -> None:
    kinds = {CRASH, STORAGE, WRITE}
    for step, bound in (("gateway.start#2", WRITE), ("receiver.commit/batch=0", STORAGE)):
        unread = Storage(Point.parse(step), "EIO", 0, step.partition(".")[0], read=1)
        assert unread.counts_as(kinds) == bound


def test_a_retry_is_owed_to_the_fault_that_made_it_necessary() -> None:
    lost = f"omit-reply({LINK}, {COMMIT})"
    trace = Trace()
    trace.whole(OPEN)
    trace.whole(PLAN)
    trace.whole(OFFSETS)
    trace.begin(COMMIT, OFFSETS, link=LINK)
    trace.begin(SERVED, COMMIT, node="receiver")
    trace.injects(lost, "driver")
    trace.end(SERVED, COMMIT, node="receiver")
    trace.fail(COMMIT)
    trace.committed()
    trace.whole(COMMITS)
    run = lineage_of(clean().events)
    found = hypotheses(run.lineage, 0, 2, [lineage_of(trace.events).lineage])
    assert frozenset({lost, f"omit({LINK}, {COMMIT}#2)"}) in found
    assert frozenset({f"omit({LINK}, {COMMIT})"}) in found


READ = "batch=0/p=0/a=0/source.read"
DRIVERS_OWN = (OPEN, PLAN, OFFSETS, COMMIT, COMMITS)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            STORAGE,
            {
                f"storage({how} {step})"
                for how in ("ENOSPC, before", "EIO, after")
                for step in (OFFSETS, SERVED, COMMITS)
            },
        ),
        (
            PAUSE,
            {f"pause(driver, from {step}, replaced)" for step in DRIVERS_OWN}
            | {f"pause(driver, from {step})" for step in DRIVERS_OWN}
            | {f"pause(driver, from {COMMIT} until {COMMIT}#2, replaced)"}
            | {f"pause(driver, from {COMMIT} until {READ}#2, replaced)"}
            | {f"pause(driver, from {OPEN} until {COMMIT}, replaced)"}
            | {f"pause(receiver, from {SERVED})"}
            | {f"pause(receiver, from {SERVED} until {COMMIT}#2)"}
            | {f"stall(receiver, {SERVED} until before {SERVED}#2)"}
            | {f"silence({LINK}, {COMMIT})"},
        ),
        (DUPLICATE, {f"duplicate({LINK}, {COMMIT})"}),
        (PARTITION, {f"cut(receiver|driver, from {COMMIT} for {n} tries)" for n in (2, "all")}),
    ],
)
def test_other_kinds_of_faults_are_hypotheses_where_they_can_fire(
    kind: str, expected: set[str]
) -> None:
    run = lineage_of(clean().events, kinds={kind})
    assert set(run.faults) == expected
    with Hypotheses(run.lineage, Bounds({kind: 1})) as search:
        found = set()
        while (chosen := search.smallest()) is not None:
            found |= chosen
            search.exclude(chosen)
    assert found == expected
    assert not lineage_of(clean().events).faults.keys() & expected


def test_a_sender_that_stands_still_is_not_waited_for_until_it_asks_again_itself() -> None:
    connect, forget = "sender.connect/lines", "sender.forget/lines/7"
    trace = Trace()
    trace.begin(connect, node="sender", link=SENDING)
    trace.end(connect, node="sender", link=SENDING)
    trace.begin(SEND, connect, node="sender", link=SENDING)
    trace.end(SEND, connect, node="sender", link=SENDING)
    trace.begin(KEPT, SEND, node="gateway")
    trace.end(KEPT, SEND, node="gateway")
    trace.begin(ACK, KEPT, node="gateway", link=ACKING)
    trace.end(ACK, KEPT, node="gateway", link=ACKING)
    trace.begin(forget, ACK, node="sender")
    trace.end(forget, ACK, node="sender")
    pauses = lineage_of(trace.events, kinds={PAUSE}).faults.keys()
    assert f"pause(sender, from {forget})" in pauses
    assert f"pause(gateway, from {KEPT} until {connect}#2)" in pauses
    assert not [id for id in pauses if id.startswith("pause(sender") and "until" in id]


def with_calls_to_disk(
    events: Sequence[TraceEvent], calls: Sequence[Sequence[object]]
) -> list[TraceEvent]:
    """A run of which the commit at the receiver made these calls to its disk."""
    reported = {"disk": {"after": f"before {SERVED}", "calls": calls, "more": 0}}
    return [
        replace(e, detail=reported) if (e.step, e.phase) == (SERVED, "after") else e for e in events
    ]


def with_calls(calls: Sequence[Sequence[object]]) -> RunLineage:
    """The clean run with these calls."""
    return lineage_of(with_calls_to_disk(clean().events, calls), kinds={STORAGE})


def proposed(run: RunLineage) -> set[str]:
    """The single faults that a search tries."""
    found: set[str] = set()
    with Hypotheses(run.lineage, Bounds({STORAGE: 1})) as search:
        while (chosen := search.smallest()) is not None:
            found |= chosen
            search.exclude(chosen)
    return found


def test_a_server_is_stopped_once_it_has_what_nobody_knows_of_and_may_die_after_that() -> None:
    trace = clean()
    trace.begin(SERVED, COMMIT, node="receiver")  # asked again
    trace.end(SERVED, COMMIT, node="receiver")
    run = lineage_of(trace.events, kinds={CRASH, WRITE})
    stopped = f"stop(receiver, before {SERVED})"
    assert [id for id in run.faults if id.startswith("stop")] == [stopped]
    kinds = ({CRASH, WRITE}, {CRASH})
    assert [run.faults[stopped].counts_as(asked) for asked in kinds] == [WRITE, CRASH]


SYNCED = [[1, "append", "1.0", 9], [2, "sync", "1.0", 0]]


def test_what_is_synced_can_be_lost_before_that_alone() -> None:
    cut = f"power-cut(receiver, {SERVED}"
    cuts = {id for id in proposed(with_calls(SYNCED)) if id.startswith("power-cut")}
    assert cuts == {f"{cut}, keep {keep})" for keep in ("nothing", "zeros")} | {f"{cut})"}


def test_what_is_synced_after_a_step_can_be_lost_before_that_too() -> None:
    trace = clean()
    trace.begin("receiver.prepare/batch=1/p=0/a=0", PLAN, node="receiver")
    trace.end("receiver.prepare/batch=1/p=0/a=0", PLAN, node="receiver")
    reported = {"disk": {"after": f"after {SERVED}", "calls": SYNCED, "more": 0}}
    events = [
        replace(e, detail=reported) if e.step.startswith("receiver.prepare") else e
        for e in trace.events
    ]
    found = proposed(lineage_of(events, kinds={STORAGE}))
    assert f"crash-writing(receiver, after {SERVED})" in found
    cut = f"power-cut(receiver, after {SERVED}, sync 1"
    kept = {f"{cut}, keep {keep})" for keep in ("nothing", "zeros")}
    assert kept | {f"{cut})"} <= found


def test_what_is_never_synced_can_be_lost_when_others_know_of_it() -> None:
    after = f"power-cut(receiver, after {SERVED}"
    cuts = {id for id in proposed(with_calls(SYNCED[:1])) if id.startswith("power-cut")}
    kept = {f"{after}, keep {keep})" for keep in ("half", "zeros")}
    assert cuts == {f"{after})"} | kept


def test_the_last_moment_at_which_something_is_lost_is_the_last_one_within_the_batches() -> None:
    trace = clean()
    for at in ("batch=0/p=1/a=0", "batch=1/p=0/a=0"):
        trace.begin(f"receiver.prepare/{at}", PLAN, node="receiver")
        trace.end(f"receiver.prepare/{at}", PLAN, node="receiver")
    events = with_calls_to_disk(trace.events, SYNCED[:1])
    found = lineage_of(events, 1, kinds={STORAGE}).faults.values()
    cuts = {fault.points[0] for fault in found if isinstance(fault, PowerCut)}
    assert cuts == {
        Point(SERVED, "after"),
        Point("receiver.prepare/batch=0/p=1/a=0", "after"),
    }


def test_a_name_that_is_never_synced_can_be_lost_and_overtake_its_data() -> None:
    calls = [[1, "open", "1.0", "new", 0], *SYNCED[:1], [3, "rename", "new", "whole", 0]]
    cuts = {id for id in proposed(with_calls(calls)) if id.startswith("power-cut")}
    after = f"power-cut(receiver, after {SERVED}"
    kept = {f"{after}, keep {keep})" for keep in ("names", "half", "1")}
    assert cuts == {f"{after})"} | kept


def test_a_write_can_come_back_as_zeros_beside_a_name_that_is_never_synced() -> None:
    calls = [
        [1, "open", "1.0", "new", 0],
        [2, "append", "1.0", 2],
        [3, "rename", "new", "whole", 0],
        *([4, "append", "log", 9], [5, "sync", "log", 0]),
    ]
    cuts = {id for id in proposed(with_calls(calls)) if id.startswith("power-cut")}
    assert f"power-cut(receiver, {SERVED}, keep zeros)" in cuts


def test_each_call_to_the_disk_can_fail() -> None:
    storage = {id for id in proposed(with_calls(SYNCED)) if SERVED in id and "storage" in id}
    assert storage == {
        f"storage(ENOSPC, receiver, before {SERVED}, call 1)",
        f"storage(SHORT, receiver, before {SERVED}, call 1)",
        f"storage(EIO, receiver, before {SERVED}, call 1 done)",
        f"storage(EIO, receiver, before {SERVED}, call 2 and on)",
        f"storage(EIO, receiver, before {SERVED}, call 2)",
        f"storage(EIO, after {SERVED})",
    }


def test_what_a_server_lives_through_is_counted_by_itself_where_bounds_ask_for_it() -> None:
    events = with_calls_to_disk(clean().events, SYNCED)
    for kinds, counted in (({STORAGE}, {STORAGE}), ({STORAGE, WRITE}, {STORAGE, WRITE})):
        faults = lineage_of(events, kinds=kinds).lineage.faults.values()
        assert {fault.kind for fault in faults} == counted
    refused = {fault.id for fault in faults if fault.kind == WRITE}
    of_server = {f.id for f in faults if f.id.startswith("storage(") and SERVED in f.id}
    done = {f"storage(EIO, receiver, before {SERVED}, call 1 done)"}  # fires alone
    assert refused == of_server - done


def test_a_node_that_ends_by_itself_and_comes_back_owes_that_to_the_fault_that_fired() -> None:
    refused = f"storage(ENOSPC, before {OFFSETS})"
    trace = Trace()
    trace.whole(OPEN)
    trace.whole(PLAN)
    trace.begin(OFFSETS, PLAN)
    trace.injects(refused, "")
    trace.fail(OFFSETS)
    trace.restart()
    trace.whole("epoch=2/sink.open")
    trace.whole(OFFSETS, PLAN)
    trace.committed()
    trace.whole(COMMITS)
    kinds = {STORAGE, CRASH}
    run = lineage_of(clean().events, kinds=kinds)
    with Hypotheses(run.lineage, Bounds({CRASH: 1, STORAGE: 1})) as search:
        search.extend(lineage_of(trace.events, kinds=kinds).lineage)
        both = frozenset({refused, f"crash(driver, before {OFFSETS}#2)"})
        assert search.admits(both)
        assert not search.admits(frozenset({refused}))
        assert search.admits(frozenset({f"crash(driver, before {COMMIT})"}))


def test_a_step_whose_cause_cannot_be_told_is_named() -> None:
    trace = clean()
    trace.whole("receiver.commit/batch=7")
    trace.whole("batch=0/sink.extra", "batch=0/never")
    unread = read_occurrences(trace.events).unread
    assert unread == [
        "receiver.commit/batch=7: it names no cause",
        "batch=0/sink.extra: its cause batch=0/never has not been seen",
        "batch=0/sink.extra: it names no cause",
        "batch=0/sink.extra: its cause batch=0/never has not been seen",
    ]


def test_a_link_that_does_not_name_two_nodes_is_told_and_cannot_be_cut() -> None:
    trace = clean()
    trace.begin("gateway.ack/lines/0", COMMITS, link="gateway->")
    reading = read_occurrences(trace.events)
    assert "gateway.ack/lines/0: its link gateway-> does not name two nodes" in reading.unread
    assert reading.occurrences[-1].link is None


def test_what_spark_notes_of_a_source_of_its_own_comes_between_its_metadata_and_first_offsets() -> (
    None
):
    trace = Trace()
    for step in ("metadata", "source=0/log=0", OFFSETS, COMMITS, "batch=1/offsets"):
        trace.whole(step)
    reading = read_occurrences(trace.events)
    _, log, offsets, _, following = reading.occurrences
    assert reading.unread == []
    assert [o.step for o in log.causes] == ["metadata"]
    assert [o.step for o in offsets.causes] == ["metadata", "source=0/log=0"]
    assert [o.step for o in following.causes] == ["metadata", COMMITS]


def test_the_forced_replay_at_the_end_is_no_alternative() -> None:
    trace = clean()
    trace.events.append(TraceEvent("replay/batch=0", "after", "driver"))
    before = len(read_occurrences(trace.events).occurrences)
    trace.committed()
    assert len(read_occurrences(trace.events).occurrences) == before


def fed(sent: str, replay: str = "") -> Trace:
    """A message reaches the driver by the gateway's journal. ``sent``: "once", "again" when its
    first sending was lost, "unacked" when only the ack was; ``replay``: a crash of the driver."""
    trace = Trace()
    gateway, sender = {"node": "gateway"}, {"node": "sender", "link": SENDING}
    trace.begin(SEND, **sender)
    if sent == "again":
        trace.injects(f"omit({SENDING}, {SEND})", "sender")
        trace.events.append(TraceEvent(SEND, "failed", "sender", link=SENDING))
        trace.begin(SEND, **sender)
    trace.end(SEND, **sender)
    trace.begin(KEPT, SEND, **gateway)
    trace.end(KEPT, SEND, **gateway)
    trace.begin(ACK, KEPT, link=ACKING, **gateway)
    if sent == "unacked":
        trace.injects(f"omit({ACKING}, {ACK})", "gateway")
        trace.end(ACK, KEPT, link=ACKING, **gateway)  # a push: nobody reports that it was lost
        trace.begin("sender.connect/lines", **sender)
        trace.end("sender.connect/lines", KEPT, **sender)
    else:
        trace.end(ACK, KEPT, link=ACKING, **gateway)
    trace.whole(OPEN)
    trace.whole(PLAN, KEPT)
    trace.whole(OFFSETS, PLAN)
    if replay:
        trace.dies_before_the_commit(replay)
    trace.committed()
    trace.whole(COMMITS)
    return trace


def test_repairs_that_take_no_part_in_each_other_are_known_to_work_together() -> None:
    lost, killed = f"omit({SENDING}, {SEND})", f"crash(driver, before {COMMIT})"
    clean_run = lineage_of(fed("once").events).lineage
    again = lineage_of(fed("again").events).lineage
    replay = lineage_of(fed("once", killed).events).lineage
    both = frozenset({lost, killed})
    assert frozenset({lost}) in hypotheses(clean_run, 1, 1, [replay])
    found = hypotheses(clean_run, 1, 1, [again, replay])
    assert both not in found
    assert frozenset({lost, f"omit({LINK}, {COMMIT}#2)"}) not in found
    assert frozenset({killed, f"omit({LINK}, {COMMIT}#2)"}) in found


def test_what_an_earlier_incarnation_did_counts_whichever_try_did_it() -> None:
    killed, lost = f"crash(driver, before {COMMIT})", f"omit({LINK}, {PLAN})"

    def run(retry: bool, replay: bool) -> Lineage:
        trace = Trace()
        trace.whole(OPEN)
        trace.begin(PLAN, link=LINK)
        if retry:
            trace.injects(lost, "driver")
            trace.fail(PLAN)
            trace.begin(PLAN, link=LINK)
        trace.end(PLAN, link=LINK)
        trace.begin(COMMIT, PLAN, link=LINK)
        if replay:
            trace.injects(killed, "driver")
            trace.restart()
            trace.begin(COMMIT, PLAN, link=LINK)  # PLAN is not done again
        trace.end(COMMIT, PLAN, link=LINK)
        return lineage_of(trace.events).lineage

    found = hypotheses(run(False, False), 1, 1, [run(True, False), run(False, True)])
    assert frozenset({killed, lost}) not in found


def test_a_goal_that_a_good_run_did_without_is_made_up_for_by_what_that_run_had_instead() -> None:
    lost = f"omit({ACKING}, {ACK})"
    clean_run = lineage_of(fed("once").events).lineage
    without = lineage_of(fed("unacked").events).lineage
    assert frozenset({lost}) in hypotheses(clean_run, 1, 1, [without])
    make_up(without, clean_run, [STRIKING[lost]])
    found = hypotheses(clean_run, 1, 2, [without])
    assert frozenset({lost}) not in found
    reported = f"omit-reply({SENDING}, sender.connect/lines)"
    assert frozenset({lost, reported}) in found
    assert frozenset({lost, f"crash(receiver, before {SERVED})"}) not in found


def test_a_batch_of_nothing_rests_on_what_came_before_it() -> None:
    trace = Trace()
    trace.whole(OPEN)
    trace.whole("batch=0/source.note")
    reading = read_occurrences(trace.events)
    assert reading.unread == []
    assert [cause.step for cause in reading.occurrences[-1].causes] == [OPEN]


def test_a_task_begins_without_what_is_done_within_it() -> None:
    """Else each run would seem to have lost, when its tasks begin, what they have yet to write."""
    task, read = "batch=0/stage=0/p=0/a=0/task", "batch=0/p=0/a=0/source.read"
    write = "batch=0/p=0/a=0/state.write"
    calls = {"after": f"before {write}", "calls": [[1, "append", "1.0", 10]], "more": 0}

    def with_a_task(sent: str) -> list[TraceEvent]:
        trace = Trace()
        trace.begin(task)
        trace.whole(read, PLAN)
        trace.begin(write, read)
        trace.events.append(
            TraceEvent(write, "after", "driver", 1, (read,), detail={"disk": calls})
        )
        trace.end(task)
        events = fed(sent).events
        place = 1 + max(n for n, e in enumerate(events) if e.step == OFFSETS)
        return [*events[:place], *trace.events, *events[place:]]

    alone = read_occurrences(with_a_task("once"))
    records = CleanRecords.of(alone, {})
    assert any(record.startswith(write) for record in records.all["driver"])
    assert write in records.needed(Point(task, "after"), "driver")
    lost = f"omit({SENDING}, {SEND})"
    lineage = lineage_of(with_a_task("again"), clean=records).lineage
    assert list(lineage.firings(f"{lost} does not matter to the driver"))


def test_what_a_failed_step_has_written_is_on_the_disk_all_the_same() -> None:
    """Half of a frame stays in a journal whose disk is full, unless somebody takes it back: so it
    matters to the next start of the gateway."""
    full = f"storage(ENOSPC, gateway, before {KEPT}, call 1)"

    def kept(half: Sequence[Sequence[object]] | None) -> list[TraceEvent]:
        def ended(phase: Phase, calls: Sequence[Sequence[object]]) -> TraceEvent:
            disk = {"after": f"before {KEPT}", "calls": calls, "more": 0}
            return TraceEvent(KEPT, phase, "gateway", 1, (SEND,), detail={"disk": disk})

        trace = Trace()
        if half is not None:
            trace.begin(SEND, node="sender", link=SENDING)
            trace.begin(KEPT, SEND, node="gateway")
            trace.injects(full, "gateway")
            trace.events.append(ended("failed", half))
            trace.events.append(TraceEvent(SEND, "failed", "sender", link=SENDING))
        trace.begin(SEND, node="sender", link=SENDING)
        trace.begin(KEPT, SEND, node="gateway")
        trace.events.append(ended("after", [[1, "append", "log", 9], [2, "sync", "log", 0]]))
        trace.end(SEND, KEPT, node="sender", link=SENDING)
        return trace.events

    records = CleanRecords.of(read_occurrences(kept(None)), {})
    harmless = f"{full} does not matter to the gateway"
    for half, alike in (([[1, "append", "log", 4]], False), ([[1, "sync", "log", 0]], True)):
        lineage = lineage_of(kept(half), kinds={STORAGE}, clean=records).lineage
        assert (harmless in lineage.graph) is alike


def test_what_another_file_holds_is_another_record() -> None:
    """A log whose next segment was not begun goes on in the one before: as many calls, and a start
    reads other files."""
    full = f"storage(EIO, gateway, before {KEPT}, call 1)"
    rolled = [
        [1, "append", "1.0", 9],
        [2, "open", "1.1", "log/segment.new", 0],
        [3, "append", "1.1", 9],
        [4, "rename", "log/segment.new", "log/2", 0],
        [5, "remove", "log/1", 0],
    ]

    def kept(
        first: Sequence[Sequence[object]], handle: str, *, hit: bool = False
    ) -> list[TraceEvent]:
        trace = Trace()
        trace.begin(SEND, node="sender", link=SENDING)
        trace.begin(KEPT, SEND, node="gateway")
        opened = [0, "open", "1.0", "log/1", 0]
        calls = {"after": f"before {KEPT}", "calls": [opened, *first], "more": 0}
        if hit:
            trace.injects(full, "gateway")
        trace.events.append(TraceEvent(KEPT, "after", "gateway", detail={"disk": calls}))
        trace.end(SEND, KEPT, node="sender", link=SENDING)
        trace.begin(RELEASED, KEPT, node="gateway")
        calls = {"after": f"before {RELEASED}", "calls": [[1, "append", handle, 9]], "more": 0}
        trace.events.append(TraceEvent(RELEASED, "after", "gateway", detail={"disk": calls}))
        return trace.events

    records = CleanRecords.of(read_occurrences(kept(rolled, "1.1")), {})
    harmless = f"{full} does not matter to the gateway"
    for calls, handle, alike in (
        (rolled, "1.1", True),
        (rolled, "1.0", False),  # it goes on in the old one
        (rolled[:-1], "1.1", False),  # the old one is left
    ):
        events = kept(calls, handle, hit=True)
        assert (
            harmless in lineage_of(events, kinds={STORAGE}, clean=records).lineage.graph
        ) is alike


def test_what_is_written_behind_a_step_is_on_the_disk_too() -> None:
    """A server that answers first and tidies up then has other records where that fails."""
    full = f"storage(EIO, gateway, before {KEPT}, call 1)"

    def kept(removed: bool, hit: bool) -> list[TraceEvent]:
        trace = Trace()
        trace.begin(SEND, node="sender", link=SENDING)
        trace.begin(KEPT, SEND, node="gateway")
        if hit:
            trace.injects(full, "gateway")
        trace.end(KEPT, SEND, node="gateway")
        trace.end(SEND, KEPT, node="sender", link=SENDING)
        calls = [[1, "remove", "log/1", 0]] if removed else [[1, "sync", "log/2", 0]]
        disk = {"after": f"after {KEPT}", "calls": calls, "more": 0}
        begun = TraceEvent(RELEASED, "before", "gateway", 1, (KEPT,), detail={"disk": disk})
        return [*trace.events, begun, TraceEvent(RELEASED, "after", "gateway")]

    records = CleanRecords.of(read_occurrences(kept(removed=True, hit=False)), {})
    harmless = f"{full} does not matter to the gateway"
    for removed in (True, False):
        events = kept(removed, hit=True)
        run = lineage_of(events, kinds={STORAGE}, clean=records).lineage
        assert (harmless in run.graph) is removed


def test_a_node_that_writes_only_after_a_fault_has_other_records_then() -> None:
    lost = f"omit({LINK}, {PLAN})"
    spilt = {"after": f"before {PLAN}", "calls": [[1, "append", "spill", 9]], "more": 0}

    def run(*spills: TraceEvent) -> list[TraceEvent]:
        trace = Trace()
        trace.whole(OPEN)
        trace.begin(PLAN, link=LINK)
        if spills:
            trace.injects(lost, "driver")
            trace.events += spills
            trace.begin(PLAN, link=LINK)
        trace.end(PLAN, link=LINK)
        return trace.events

    failed = TraceEvent(PLAN, "failed", "driver", link=LINK)
    records = CleanRecords.of(read_occurrences(run()), {})
    harmless = f"{lost} does not matter to the driver"
    assert harmless in lineage_of(run(failed), clean=records).lineage.graph
    spills = replace(failed, detail={"disk": spilt})
    assert harmless not in lineage_of(run(spills), clean=records).lineage.graph
