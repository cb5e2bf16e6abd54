"""When whoever gets no answer asks again, and which of its tries a cut loses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.search.occurrences import read_occurrences
from bettong.harness.search.partitions import Partitions
from bettong.lineage.trace import TraceEvent

PREPARE = "batch=0/p=0/a=0/sink.prepare"
SECOND = "batch=0/p=0/a=0/part=1/sink.prepare"
OTHER = "batch=0/p=1/a=0/sink.prepare"
SERVED = "receiver.prepare/batch=0/p=0/a=0"


def asked(step: str, *within: TraceEvent) -> Sequence[TraceEvent]:
    """A request of the driver, with what happens until it is answered."""
    before, after = (
        TraceEvent(step, phase, "driver", link="driver->receiver")  # type: ignore[arg-type]
        for phase in ("before", "after")
    )
    return (before, *within, after)


def served(step: str, by: str) -> Sequence[TraceEvent]:
    """What the receiver does because of it."""
    return [TraceEvent(step, phase, "receiver", causes=(by,)) for phase in ("before", "after")]  # type: ignore[arg-type]


IN_PARTS = asked(
    PREPARE,
    *served(f"{SERVED}/part=0", PREPARE),
    *asked(SECOND, *served(SERVED, SECOND)),
)
AT_ONCE = asked(PREPARE, *served(SERVED, PREPARE))


@pytest.mark.parametrize("events", [AT_ONCE, IN_PARTS])
def test_who_has_asked_for_a_part_asks_for_all_of_it_again(events: Sequence[TraceEvent]) -> None:
    reading = read_occurrences([*asked(OTHER), *events])
    steps = [o for o in reading.occurrences if o.node == "receiver"]
    assert steps
    for step in steps:
        assert Partitions(reading).tried_again(step) == Point(PREPARE, "before", 2)


def test_a_sender_that_waits_for_room_to_be_made_for_it_connects_again() -> None:
    made = [TraceEvent("gateway.create/lines", phase, "gateway") for phase in ("before", "after")]  # type: ignore[arg-type]
    connect, link = "sender.connect/lines", "sender->gateway"
    begun, over = (
        TraceEvent(connect, phase, "sender", link=link)  # type: ignore[arg-type]
        for phase in ("before", "after")
    )
    for events, again in (
        ([begun, *made, over], Point(connect, "before", 2)),
        ([*made, begun, over], None),
        ([begun, over, *made], None),
    ):
        reading = read_occurrences(events)
        (step,) = (o for o in reading.occurrences if o.node == "gateway")
        assert Partitions(reading).tried_again(step) == again


def test_a_cut_at_a_part_loses_that_part_and_the_next_try_of_all() -> None:
    lost = IN_PARTS[:4]
    failed = [
        TraceEvent(step, "failed", "driver", link="driver->receiver") for step in (SECOND, PREPARE)
    ]
    reading = read_occurrences([*lost, *failed, *IN_PARTS])
    second_try = [o for o in reading.occurrences if o.step == PREPARE][1]
    begun = {begin.place for _, _, begin in Partitions(reading).apart(second_try)}
    assert begun == {PREPARE, SECOND, f"{PREPARE}#2"}
