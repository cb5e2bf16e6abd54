"""What a trace tells of calls to the disk, with a real thread, disk and trace."""

from __future__ import annotations

import threading
from pathlib import Path

from bettong.engine import steps
from bettong.engine.storage.disk import OS_DISK
from bettong.harness.search.durable import NotDurable
from bettong.harness.search.occurrences import read_occurrences
from bettong.lineage.trace import read_trace


def test_what_a_thread_has_done_that_ends_without_a_step_is_told_by_the_next_one(
    tmp_path: Path,
) -> None:
    """Whoever is connected first has a server open its files, though his request may never come."""
    log = tmp_path / "log"
    trace = tmp_path / "trace"
    before = steps.installed()
    earlier = tmp_path / "earlier"
    try:
        for run in (earlier, trace):  # of what was done in the first one the second tells nothing
            steps.install(steps.Instrumentation(node="receiver", trace=str(run)))
            thread = threading.Thread(target=lambda: OS_DISK.append_to(log).close())
            thread.start()
            thread.join()
        with steps.step("receiver.open/epoch=1", causes=["epoch=1/sink.open"]):
            file = OS_DISK.append_to(log)
            file.write(b"one")
            file.close()
    finally:
        steps.install(before)
    reading = read_occurrences(read_trace(trace))
    (opened,) = reading.occurrences
    told = [(report.phase, [call[1] for call in report.calls]) for report in reading.disk]
    assert told == [("", ["open"]), ("before", ["open", "append"])]
    assert [call.operation for call in opened.calls] == ["open", "append"]
    assert NotDurable(reading).of(opened), "the name is not durable, nor what is in it"


def test_what_a_thread_does_between_two_runs_belongs_to_no_step_of_the_first(
    tmp_path: Path,
) -> None:
    before = steps.installed()
    try:
        for run in ("first", "second"):
            steps.install(steps.Instrumentation(node="driver", trace=str(tmp_path / run)))
            OS_DISK.append_to(tmp_path / "log").close()
            OS_DISK.open(tmp_path / "log").close()
            with steps.step(f"batch=0/{run}"):
                OS_DISK.open(tmp_path / "log").close()
            OS_DISK.open(tmp_path / "log").close()
    finally:
        steps.install(before)
    reading = read_occurrences(read_trace(tmp_path / "second"))
    (taken,) = reading.occurrences
    assert taken.reads == ["log"]
    assert [(report.phase, [call[1] for call in report.calls]) for report in reading.disk] == [
        ("", ["open"]),
        ("before", []),
    ]
