"""Which steps of a process are over."""

from __future__ import annotations

from bettong.harness.conductor.event_log import EventLog
from bettong.lineage.trace import TraceEvent


def test_what_is_to_come_first_is_over_with_its_step_and_the_next_or_its_process() -> None:
    book = EventLog()
    begun = TraceEvent("batch=0/sink.commit", "before", "driver")
    other = TraceEvent("batch=0/source.read", "before", "driver")
    taken = book.enter(1, begun)
    assert not book.are_over(1, taken, 1)
    book.enter(2, other)
    book.leave(2, TraceEvent(other.step, "after", "driver"))
    assert not book.are_over(1, taken, 2)
    book.leave(1, TraceEvent(begun.step, "failed", "driver"))
    assert book.are_over(1, taken, 1)
    assert not book.are_over(1, taken, 2)
    released = TraceEvent("batch=0/source.commit", "before", "driver")
    book.enter(1, released)
    assert not book.are_over(1, taken, 2)
    book.leave(1, TraceEvent(released.step, "after", "driver"))
    assert book.are_over(1, taken, 2)


def test_a_process_that_is_gone_takes_no_more_steps() -> None:
    book = EventLog()
    taken = book.enter(1, TraceEvent("batch=0/sink.commit", "before", "driver"))
    book.gone(1)
    assert book.are_over(1, taken, 2)
