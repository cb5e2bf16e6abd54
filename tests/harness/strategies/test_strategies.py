from __future__ import annotations

import json

from hypothesis import given

from bettong.harness.checkers import Record
from bettong.harness.faults.schedule import Schedule
from bettong.harness.strategies.data import (
    WORD_COUNT,
    fault_schedules,
    interleavings,
    keyed_streams,
    messages,
)
from bettong.reports.steps import faulted_steps


@given(fault_schedules())
def test_schedules_are_valid_and_come_back_from_json(schedule: Schedule) -> None:
    schedule.check(WORD_COUNT)
    assert Schedule.from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


@given(fault_schedules())
def test_reports_find_the_steps_of_every_fault_by_its_id(schedule: Schedule) -> None:
    for fault in schedule.faults:
        assert faulted_steps(fault.id), fault.id
        assert all(step.startswith("batch=") for step, _ in faulted_steps(fault.id))


@given(keyed_streams().flatmap(lambda s: interleavings(s).map(lambda other: (s, other))))
def test_interleavings_keep_the_order_of_each_key(
    pair: tuple[tuple[Record, ...], tuple[Record, ...]],
) -> None:
    stream, other = pair
    for key in {r.key for r in stream}:
        assert [r for r in stream if r.key == key] == [r for r in other if r.key == key]


@given(messages())
def test_messages_are_bytes(message: bytes) -> None:
    assert isinstance(message, bytes)
