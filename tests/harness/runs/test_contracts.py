"""Which ends of a node are excused by which faults."""

from __future__ import annotations

import pytest

from bettong.harness.conductor.fault_status import Injected
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Cut, Omit, Pause, PowerCut, Storage
from bettong.harness.faults.point import Point
from bettong.harness.runs.contracts import Excuses, is_fenced, last_beside_another
from bettong.lineage.trace import TraceEvent

AT = Point("batch=0/commits")
DISK = Storage(AT)
OUTAGE = PowerCut("driver", AT)
LOST = Omit("driver->receiver", AT)
FOR_GOOD = Crash("receiver", AT, restart=False)
TWICE = Cut(("driver",), ("receiver",), AT, tries=2)
ALWAYS = Cut(("driver",), ("receiver",), AT, tries="all")


@pytest.mark.parametrize(
    ("node", "status", "fault", "where", "excused"),
    [
        ("driver", 1, DISK, "driver", True),
        ("driver", 1, DISK, "w1", True),  # its tasks' disk is its own
        ("driver", 1, DISK, "receiver", False),
        ("receiver", 2, DISK, "receiver", False),
        ("gateway", 2, DISK, "gateway", False),
        ("driver", 1, OUTAGE, "driver", False),  # its disk works when it comes back
        ("sender", 3, OUTAGE, "sender", False),
        ("driver", 1, LOST, "driver", False),
        ("driver", 1, TWICE, "driver", False),
        ("driver", 1, ALWAYS, "driver", True),
        ("sender", 3, ALWAYS, "driver", False),  # it has the patience that it always has
        ("driver", 1, FOR_GOOD, "receiver", True),
        ("driver", 70, FOR_GOOD, "receiver", False),
        ("sender-lines", 3, FOR_GOOD, "receiver", True),
        ("sender", 2, FOR_GOOD, "receiver", False),
    ],
)
def test_only_what_a_contract_names_is_excused(
    node: str, status: int, fault: Fault, where: str, excused: bool
) -> None:
    assert bool(Excuses().why(node, status, [Injected(fault, where)])) is excused


def test_nothing_is_excused_where_nothing_has_fired() -> None:
    assert Excuses().why("driver", 1, []) == ""


def test_a_node_that_its_disk_has_ended_does_not_end_again_when_it_has_started_anew() -> None:
    excuses, failed = Excuses(), [Injected(DISK, "driver")]
    assert excuses.why("driver", 1, failed)
    assert excuses.why("driver", 1, failed) == ""
    assert excuses.why("w1", 1, failed), "one that it has not ended yet"
    assert excuses.why("driver", 1, [*failed, Injected(Storage(AT, "EIO"), "driver")])


def test_nobody_answers_those_that_are_started_again_either() -> None:
    excuses, gone = Excuses(), [Injected(FOR_GOOD, "receiver")]
    assert excuses.why("driver", 1, gone) and excuses.why("driver", 1, gone)


@pytest.mark.parametrize(
    ("words", "excused"),
    [
        ("bettong.engine.net.errors.ConnectionLostError: gave up after 60 s: timed out", True),
        ("bettong.lineage.errors.BettongError: Kafka: gave up after 60 s: no broker", True),
        ("pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED]", True),
        ("it said nothing", True),
        ("bettong.lineage.errors.BettongError: batch 0 cannot be committed: not prepared", False),
        ("bettong.engine.net.errors.RefusedError: amounts has messages 5 to 6", False),
    ],
)
def test_a_driver_whom_nobody_answers_ends_of_that_and_of_nothing_else(
    words: str, excused: bool
) -> None:
    gone = [Injected(FOR_GOOD, "receiver")]
    assert bool(Excuses().why("driver", 1, gone, words=words)) is excused


def taken(epoch: int, incarnation: int, done: bool = True) -> TraceEvent:
    return TraceEvent(f"epoch={epoch}/take", "after", "driver", incarnation, detail={"taken": done})


def test_a_driver_with_the_newest_epoch_is_not_excused_by_one_that_it_has_replaced() -> None:
    zombie = [Injected(Pause("driver", AT, replace=True), "driver")]
    events = [taken(1, 1), taken(2, 2)]
    assert not is_fenced(events, "driver", 2)
    assert not Excuses().why("driver", 1, zombie, is_fenced=False)
    assert is_fenced([*events, taken(3, 2, done=False), taken(3, 1)], "driver", 2)
    assert Excuses().why("driver", 1, zombie, is_fenced=True)
    assert not is_fenced((), "driver", 1)


def test_on_spark_a_driver_ends_too_when_a_zombie_has_written_what_it_was_to_write() -> None:
    older = TraceEvent("batch=1/offsets", "after", "driver", 1)
    begun, zombies = taken(2, 2), TraceEvent("batch=2/offsets", "after", "driver", 1)
    assert not is_fenced([taken(1, 1), older, begun], "driver", 2)
    assert is_fenced([taken(1, 1), older, begun, zombies], "driver", 2)


def test_what_a_driver_has_told_last_is_not_what_the_one_has_that_it_has_replaced() -> None:
    zombies = TraceEvent("batch=0/p=0/a=0/sink.prepare", "failed", "driver", 1)
    ended = TraceEvent("batch=0/sink.commit", "failed", "driver", 2, detail={"error": "missing"})
    held = TraceEvent("fault/pause(driver)", "after", "driver")
    assert last_beside_another([taken(1, 1), taken(2, 2), ended, held], "driver", 2) is None
    assert last_beside_another([taken(1, 1), taken(2, 2), ended, zombies], "driver", 2) is ended
    assert last_beside_another([taken(1, 1)], "driver", 2) is None
