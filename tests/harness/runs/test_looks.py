"""What readers saw before all was done."""

from __future__ import annotations

import pytest

from bettong.harness.checkers import Record
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, PowerCut
from bettong.harness.faults.point import Point
from bettong.harness.faults.registry import to_entry
from bettong.harness.faults.step_ids import FAULT
from bettong.harness.runs.looks import Looks
from bettong.harness.runs.observed import Observed
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import Phase, TraceEvent

COMMIT = "receiver.commit/batch=0"
ALL = [Record("a/0", "k", "1", 0), Record("a/1", "k", "2", 0), Record("a/2", "k", "3", 1)]


class Reader:
    """Sees so many of all records at a time."""

    def __init__(self, *counts: int, unreadable: tuple[Anomaly, ...] = ()) -> None:
        self._left = list(counts)
        self._unreadable = unreadable

    def look(self) -> Observed:
        return Observed(ALL[: self._left.pop(0)], self._unreadable)


def event(step: str, phase: Phase = "after") -> TraceEvent:
    return TraceEvent(step, phase, "receiver")


def fired(fault: Fault) -> TraceEvent:
    return TraceEvent(f"{FAULT}{fault.id}", "after", "driver", detail={"fault": to_entry(fault)})


def looked(reader: Reader, *events: TraceEvent, fault: Fault | None = None) -> tuple[Anomaly, ...]:
    looks = Looks(reader.look, [] if fault is None else [fault])
    for each in events:
        looks.came(each)
    return looks.judged(ALL)


def test_whole_batches_that_stay_are_right() -> None:
    events = [
        event("batch=0/source.plan"),
        event("batch=0/sink.commit", "before"),
        event(COMMIT),
        event("receiver.commit/batch=1", "failed"),
        event("batch=1/sink.commit/sums"),
    ]
    assert looked(Reader(0, 2, 2, 3), *events) == ()


def test_a_part_of_a_batch_is_torn_even_if_it_is_whole_in_the_end() -> None:
    (torn,) = looked(
        Reader(0, 1, 3), event(COMMIT, "before"), event(COMMIT, "failed"), event(COMMIT)
    )
    assert (torn.kind, torn.messages) == ("Torn", ("a/0", "a/1"))
    assert torn.seen["snapshot"] == f"failed {COMMIT}"


def test_what_is_gone_again_is_lost() -> None:
    (lost,) = looked(Reader(3, 2), event(COMMIT), event("receiver.commit/batch=1"))
    assert (lost.kind, lost.messages) == ("Loss", ("a/2",))


def test_readers_look_when_a_fault_has_come_into_force() -> None:
    crash = Crash("receiver", Point(COMMIT))
    assert [a.kind for a in looked(Reader(1), fired(crash), fault=crash)] == ["Torn"]


def test_nobody_looks_from_where_the_power_is_cut() -> None:
    """Nor before it is told that it has been cut: others may see it sooner."""
    cut = PowerCut("receiver", Point(COMMIT, "after"))
    seen = [
        event("batch=0/sink.commit", "before"),
        event(COMMIT),
        event("batch=0/sink.commit", "failed"),
        fired(cut),
        event("receiver.commit/batch=1"),
    ]
    assert looked(Reader(0), *seen, fault=cut) == ()


def test_what_cannot_be_read_on_the_way_is_told_once() -> None:
    broken = Anomaly("Torn", note="line 1 breaks off")
    reader = Reader(2, 2, unreadable=(broken,))
    assert looked(reader, event(COMMIT, "before"), event(COMMIT)) == (broken,)


@pytest.mark.parametrize("name", ["a", "b"])
def test_batches_of_each_sink_are_whole_by_themselves(name: str) -> None:
    last = [Record("m/0@a", "k", "1", 0), Record("m/0@b", "k", "1", 0)]
    seen = [record for record in last if str(record.id).endswith(name)]
    looks = Looks(lambda: Observed(seen, ()), [])
    looks.came(event(COMMIT))
    assert looks.judged(last) == ()
