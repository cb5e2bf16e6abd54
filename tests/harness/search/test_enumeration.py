from __future__ import annotations

import pytest

from bettong.harness.faults.point import Topology
from bettong.harness.search.enumeration import (
    BatchUnknownError,
    each_step,
    random_schedules,
    steps_of_batch,
)
from bettong.harness.search.fault_plan import parse_plan
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import DUPLICATE, PAUSE, STORAGE
from bettong.lineage.trace import MessageRange, TraceEvent

TOPOLOGY = Topology(
    ("sender", "gateway", "driver", "receiver"),
    ("sender->gateway", "gateway->sender", "driver->gateway", "driver->receiver"),
)


def begun(step: str, node: str, link: str | None = None, *carries: MessageRange) -> TraceEvent:
    return TraceEvent(step, "before", node, link=link, carries=carries)


TRACE = [
    begun("sender.send/lines/7", "sender", "sender->gateway"),
    begun("sender.send/lines/11", "sender", "sender->gateway"),
    begun("gateway.append/lines/11", "gateway"),
    begun("gateway.ack/lines/11", "gateway", "gateway->sender"),
    begun("batch=1/p=0/a=0/source.read", "driver", "driver->gateway", MessageRange("lines", 8, 12)),
    begun("batch=1/sink.commit", "driver", "driver->receiver"),
    begun("receiver.commit/batch=1", "receiver"),
    begun("batch=11/sink.commit", "driver", "driver->receiver"),
    begun("batch=1/sink.commit", "driver", "driver->receiver"),
    begun("node.start/driver", "driver"),
]


def test_the_steps_of_a_batch_are_its_own_and_its_messages() -> None:
    assert [e.step for e in steps_of_batch(TRACE, 1)] == [
        "sender.send/lines/11",
        "gateway.append/lines/11",
        "gateway.ack/lines/11",
        "batch=1/p=0/a=0/source.read",
        "batch=1/sink.commit",
        "receiver.commit/batch=1",
    ]


def test_a_batch_that_there_is_not_is_named() -> None:
    with pytest.raises(BatchUnknownError, match="no batch 2"):
        steps_of_batch(TRACE, 2)
    with pytest.raises(BatchUnknownError, match="none of the first 1"):
        each_step(TRACE, 1, TOPOLOGY)


def test_each_step_has_every_single_fault() -> None:
    schedules = each_step(TRACE, 2, TOPOLOGY)
    assert all(len(s.faults) == 1 for s in schedules)
    ids = {s.ids[0] for s in schedules}
    assert len(ids) == len(schedules)
    for phase in ("before", "after"):
        assert f"crash(receiver, {phase} receiver.commit/batch=1)" in ids
        assert f"crash(driver, {phase} batch=1/sink.commit)" in ids
        assert f"crash(receiver, {phase} batch=1/sink.commit)" in ids
    assert "omit(driver->receiver, batch=1/sink.commit)" in ids
    assert "omit-reply(driver->gateway, batch=1/p=0/a=0/source.read)" in ids
    assert "omit(gateway->sender, gateway.ack/lines/11)" in ids
    assert "omit-reply(gateway->sender, gateway.ack/lines/11)" not in ids  # a push has none


def test_random_schedules_are_the_same_for_the_same_seed_and_never_twice() -> None:
    drawn = random_schedules(TRACE, 30, 7, TOPOLOGY)
    assert [s.ids for s in drawn] == [s.ids for s in random_schedules(TRACE, 30, 7, TOPOLOGY)]
    assert [s.ids for s in drawn] != [s.ids for s in random_schedules(TRACE, 30, 8, TOPOLOGY)]
    assert len({frozenset(s.ids) for s in drawn}) == len(drawn) == 30
    assert {len(s.faults) for s in drawn} == {1, 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("each-stop", "did you mean each-step?"),
        ("random:0", "write random:N"),
        ("random:many", "write random:N"),
        ("no/such/file.yaml", "cannot read the fault schedule"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        parse_plan(text, 0, TOPOLOGY)


@pytest.mark.parametrize(
    ("text", "hits"), [("each-step", True), ("random:3", True), ("none", False)]
)
def test_all_is_started_again_after_each_plan_with_faults(text: str, hits: bool) -> None:
    assert parse_plan(text, 0, TOPOLOGY).hits == hits


def test_each_step_has_faults_of_other_kinds_where_they_are_asked_for() -> None:
    kinds = {STORAGE, DUPLICATE, PAUSE}
    ids = {s.ids[0] for s in each_step(TRACE, 2, TOPOLOGY, kinds)}
    read, commit = "batch=1/p=0/a=0/source.read", "batch=1/sink.commit"
    of_two_batches = {s.faults[0].points[0].step for s in each_step(TRACE, 2, TOPOLOGY)}
    assert ids == {
        *(f"pause(driver, from {step}, replaced)" for step in (read, commit)),
        *(f"pause({e.node}, from {e.step})" for e in TRACE if e.step in (read, commit)),
        "pause(sender, from sender.send/lines/11)",
        f"silence(driver->gateway, {read})",
        f"silence(driver->receiver, {commit})",
        "pause(gateway, from gateway.append/lines/11)",
        "pause(gateway, from gateway.ack/lines/11)",
        "pause(receiver, from receiver.commit/batch=1)",
        f"duplicate(driver->gateway, {read})",
        f"duplicate(driver->receiver, {commit})",
        "duplicate(sender->gateway, sender.send/lines/11)",
        *(
            f"storage({how} {step})"
            for step in ("gateway.append/lines/11", "receiver.commit/batch=1")
            for how in ("ENOSPC, before", "EIO, after")
        ),
        *(
            f"power-cut({event.node}, {phase} {event.step})"
            for event in TRACE
            if event.step in of_two_batches and event.phase == "before"
            for phase in ("before", "after")
        ),
    }
