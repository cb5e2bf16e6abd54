"""A reply that is lost is one to the request of the step that is named: what was asked for has been
done by then, also where the step's connection is a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING


@pytest.mark.parametrize("kind", ["omit-reply", "silence"])
@pytest.mark.parametrize(
    ("link", "step", "done"),
    [
        ("driver->receiver", "epoch=1/sink.open", "receiver.open/epoch=1"),
        (
            "driver->receiver",
            "batch=0/p=1/a=0/sink.prepare",
            "receiver.prepare/batch=0/p=1/a=0",
        ),
        ("driver->receiver", "batch=1/sink.commit", "receiver.commit/batch=1"),
        ("driver->gateway", "batch=0/source.commit", "gateway.release/amounts/2"),
    ],
)
def test_what_is_asked_for_is_done_and_once_more_when_its_reply_is_lost(
    backend: LocalBackend, tmp_path: Path, link: str, step: str, done: str, kind: str
) -> None:
    lost = run(backend, tmp_path, kind, link, step)
    assert (lost.outcome, lost.not_fired) == ("good", ())
    assert (taken(lost, step), taken(lost, done)) == (2, 2)


def test_what_is_asked_for_is_not_done_when_the_request_is_lost(
    backend: LocalBackend, tmp_path: Path
) -> None:
    lost = run(backend, tmp_path, "omit", "driver->receiver", "epoch=1/sink.open")
    assert (lost.outcome, lost.not_fired) == ("good", ())
    assert (taken(lost, "epoch=1/sink.open"), taken(lost, "receiver.open/epoch=1")) == (2, 1)


def run(backend: LocalBackend, folder: Path, kind: str, link: str, step: str) -> RunRecord:
    schedule = Schedule.from_dict({"faults": [{kind: {"link": link, "at": step}}]})
    return run_once(backend, COUNTING, schedule, folder, Asked(replay=False))


def taken(seen: RunRecord, step: str) -> int:
    """How often a step was begun."""
    return sum(event.step == step and event.phase == "before" for event in seen.events)
