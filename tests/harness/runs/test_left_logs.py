"""What the logs of the servers say in the end: found where it is wrong, and nothing where all of it
is there and nothing waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.storage.log import RecordLog
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.kinds import Crash, Storage
from bettong.harness.faults.point import Point
from bettong.harness.runs.left_logs import check_logs, commits_disturbed, swept_in_the_end
from bettong.lineage.trace import TraceEvent

SENT = {"lines": 3}


def journal(layout: Layout, *releases: int, segment_bytes: int = 1, ends: bool = True) -> None:
    """Of three messages, each in a segment of its own unless segments are large."""
    found = Journal(layout.gateway / "streams" / "lines", "lines", segment_bytes=segment_bytes)
    for message in (b"a", b"b", b"c"):
        found.append(Block.of([message]))
    if ends:
        found.finish()
    for upto in releases:
        found.release(upto)
    found.close()


def test_a_journal_that_is_whole_and_released_is_good_and_so_is_none(tmp_path: Path) -> None:
    assert check_logs(Layout(tmp_path), SENT, swept=SENT) == ()
    journal(Layout(tmp_path), 2, 3)
    assert check_logs(Layout(tmp_path), SENT, swept=SENT) == ()


@pytest.mark.parametrize(("number", "ends"), [(3, False), (4, True), (2, True)])
def test_what_was_acknowledged_and_is_not_noted_is_found(
    tmp_path: Path, number: int, ends: bool
) -> None:
    journal(Layout(tmp_path), 3, ends=ends)
    (found,) = check_logs(Layout(tmp_path), {"lines": number})
    assert (found.kind, found.seen) == ("StateDivergence", {"messages": 3, "ended": ends})


def test_a_journal_that_is_gone_is_found_beside_another_one(tmp_path: Path) -> None:
    """Its next sender would be told to begin with the first message."""
    journal(Layout(tmp_path), 3)
    (found,) = check_logs(Layout(tmp_path), {**SENT, "words": 2}, swept=SENT)
    assert (found.kind, found.seen) == ("StateDivergence", {"messages": 0, "ended": False})
    assert found.note is not None and "words" in found.note


def test_a_stream_whose_sender_has_not_come_to_its_end_is_not_asked_for(tmp_path: Path) -> None:
    journal(Layout(tmp_path), 3, ends=False)
    assert check_logs(Layout(tmp_path), {}) == ()


def test_messages_that_were_not_released_are_found_and_nothing_is_changed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    journal(layout, 2)
    before = {path: path.stat().st_mtime_ns for path in layout.gateway.rglob("*")}
    (leak,) = check_logs(layout, SENT)
    assert (leak.kind, leak.seen) == ("Leak", "released below 2")
    assert before == {path: path.stat().st_mtime_ns for path in layout.gateway.rglob("*")}


class _KeepsAll(Journal):
    def _drop(self) -> None:
        pass


def test_segments_that_were_not_dropped_are_found_unless_a_fault_may_have_kept_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path)
    monkeypatch.setattr(Journal, "_drop", _KeepsAll._drop)
    journal(layout, 3)
    (leak,) = check_logs(layout, SENT, swept=SENT)
    assert leak.kind == "Leak"
    assert str(leak.seen).endswith("segments")
    assert check_logs(layout, SENT) == ()


def test_rows_that_wait_for_a_commit_are_found_and_those_that_have_it_are_not(
    tmp_path: Path,
) -> None:
    ledger = Ledger(tmp_path / "receiver" / "counts", "counts")
    ledger.open(1)
    ledger.prepare(1, 0, 0, 0, 0, True, b"")
    ledger.commit(1, 0, {0: 0})
    assert check_logs(Layout(tmp_path), {}) == ()
    ledger.prepare(1, 1, 0, 0, 0, True, b"")
    ledger.close()
    (leak,) = check_logs(Layout(tmp_path), {})
    assert (leak.kind, leak.seen) == ("Leak", "rows of batch 1")


def ledger_of(layout: Layout, batches: int) -> None:
    """Of so many committed batches, with a segment after each."""
    ledger = Ledger(layout.receiver / "counts", "counts", segment_bytes=1)
    ledger.open(1)
    for batch in range(batches):
        ledger.prepare(1, batch, 0, 0, 0, True, b"")
        ledger.commit(1, batch, {0: 0})
    ledger.close()


def test_segments_of_a_ledger_that_were_not_dropped_are_found_unless_a_fault_may_have_kept_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_of(Layout(tmp_path / "right"), 3)
    assert check_logs(Layout(tmp_path / "right"), {}, unswept=()) == ()
    monkeypatch.setattr(RecordLog, "drop_before", lambda self, number: None)
    layout = Layout(tmp_path / "keeps")
    ledger_of(layout, 3)
    (leak,) = check_logs(layout, {}, unswept=[1])
    assert (leak.kind, leak.seen) == ("Leak", "4 segments")
    assert check_logs(layout, {}, unswept=[2]) == check_logs(layout, {}) == ()


def test_a_log_that_cannot_be_read_is_left_to_its_server(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    journal(layout, 2)
    for segment in layout.gateway.rglob("segment-*.log"):
        segment.write_bytes(b"?")
    assert check_logs(layout, SENT) == ()


def test_a_log_that_its_server_cannot_start_from_is_told_where_nobody_starts_it(
    tmp_path: Path,
) -> None:
    layout = Layout(tmp_path)
    journal(layout, 3)
    Ledger(layout.receiver / "counts", "counts").close()
    for log in (layout.gateway / "streams" / "lines", layout.receiver / "counts" / "log"):
        last = sorted(log.glob("segment-*.log"))[-1]
        last.write_bytes(b"?" + last.read_bytes()[1:])
    assert check_logs(layout, SENT) == ()  # the servers say so themselves
    (of_one,) = check_logs(layout, SENT, not_started=["receiver"])
    assert of_one.note is not None
    assert of_one.note.startswith("the receiver")
    found = check_logs(layout, SENT, not_started=["gateway", "receiver"])
    assert [anomaly.kind for anomaly in found] == ["StateDivergence"] * 2
    for anomaly, server in zip(found, ("gateway", "receiver"), strict=True):
        assert anomaly.note is not None
        assert anomaly.note.startswith(f"the {server} could not be started again: ")
        assert "is not a segment of a log: damaged at byte 0" in anomaly.note


def test_a_release_after_which_nothing_has_failed_has_removed_what_an_earlier_one_has_not() -> None:
    sent = {"lines": 4, "words": 2}
    earlier, last = (
        Storage(Point(f"gateway.release/lines/{n}"), "EIO", call=3, done=True) for n in (1, 3)
    )
    assert swept_in_the_end(sent, ()) == {"lines", "words"}
    assert swept_in_the_end(sent, (earlier,)) == {"lines", "words"}
    assert swept_in_the_end(sent, (last,)) == {"words"}
    goes_on = Storage(Point("gateway.release/lines/1"), "EIO", call=3, lasting=True)
    killed = Crash("gateway", Point("gateway.release/lines/1"))
    assert swept_in_the_end(sent, (goes_on,)) == swept_in_the_end(sent, (killed,)) == set()


def told(*steps: str) -> list[TraceEvent]:
    return [TraceEvent(step, "before", "gateway") for step in steps]


def test_what_begins_after_all_faults_has_removed_what_they_have_left() -> None:
    sent = {"lines": 4, "words": 2}
    killed = [Crash("gateway", Point("gateway.release/lines/1"))]
    last = ("gateway.release/lines/3", "gateway.release/words/1")
    commits = ("receiver.commit/batch=1", "receiver.commit/batch=2/doubled")
    fault, start = "fault/crash(gateway, …)", "node.start/gateway"
    after = told(fault, start, last[0], commits[0])
    assert swept_in_the_end(sent, killed, after) == {"lines"}
    assert commits_disturbed(killed, after) == set()
    for over in (fault, start):
        amid = told(fault, *last, *commits, over, last[0], commits[0])
        assert swept_in_the_end(sent, killed, amid) == set()
        assert commits_disturbed(killed, amid) == {1, 2}


def test_a_commit_amid_which_a_call_has_failed_may_have_removed_nothing() -> None:
    failed = [
        Storage(Point(f"receiver.{step}"), "EIO", call=3)
        for step in ("commit/batch=1", "commit/batch=2/doubled", "prepare/batch=3/p=0/a=0")
    ]
    assert commits_disturbed(()) == set()
    assert commits_disturbed(failed) == {1, 2}
    assert commits_disturbed([*failed, Crash("receiver", Point("receiver.start"))]) is None
