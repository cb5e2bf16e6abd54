"""How long the clients of a run wait for an answer hangs on its faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.cluster.layout import DRIVER_PROCESS, SENDER
from bettong.harness.faults.schedule import Schedule
from bettong.harness.processes.forked import ForkServerProcess
from bettong.harness.processes.session import ProcessSession
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING

ASKS_AGAIN = (
    "pause: {node: receiver, from: before batch=1/sink.commit, until: batch=1/sink.commit#2}"
)
WITHIN = (
    "pause: {node: driver, from: epoch=1/take, call: 10, until: after epoch=1/take#2, "
    "replace: true}"
)
SILENT = "silence: {link: driver->receiver, at: batch=1/sink.commit}"


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        (ASKS_AGAIN, 3, 10),
        (SILENT, 3, 10),
        (WITHIN, 3, 10),
        ("crash: {node: receiver, before: receiver.commit/batch=1}", 10, 11),
    ],
)
def test_clients_wait_less_where_a_fault_lasts_until_one_of_them_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, least: float, most: float
) -> None:
    started: list[Sequence[str]] = []
    start = ForkServerProcess.start

    def recorded(self: ForkServerProcess, command: Sequence[str], **more: Any) -> ProcessSession:
        started.append(command)
        return start(self, command, **more)

    monkeypatch.setattr(ForkServerProcess, "start", recorded)
    schedule = Schedule.parse(f"faults: [{{{fault}}}]")
    with LocalBackend(runner="in-process") as backend:
        seen = run_once(backend, COUNTING, schedule, tmp_path / "run", Asked(replay=False))
    assert seen.outcome == "good"
    assert seen.not_fired == ()
    senders = [command for command in started if command[0] == SENDER]
    drivers = [json.loads(command[1]) for command in started if command[0] == DRIVER_PROCESS]
    answers = [float(command[command.index("--timeout") + 1]) for command in senders]
    answers += [job["timeout_s"] for job in drivers]
    assert len(senders) >= 1
    assert len(drivers) >= 1
    assert all(least <= answer < most for answer in answers)
