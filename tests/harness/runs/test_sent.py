"""What senders have noted in the end: judged by the files that they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.ingest.acked import AckedFile
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.sent import check_sent, to_be_noted


def notes(layout: Layout, *acked: tuple[int, bool]) -> None:
    file = AckedFile(layout.acked("lines"), "lines")
    for upto, ended in acked:
        file.note(upto, ended)


def test_a_sender_that_has_noted_all_and_the_end_is_good(tmp_path: Path) -> None:
    notes(Layout(tmp_path), (2, False), (4, False), (4, True))
    assert check_sent(Layout(tmp_path), {"lines": 4}) == ()


@pytest.mark.parametrize("acked", [(4, False), (3, True), (5, True)])
def test_one_that_has_noted_less_or_more_is_not(tmp_path: Path, acked: tuple[int, bool]) -> None:
    notes(Layout(tmp_path), acked)
    (found,) = check_sent(Layout(tmp_path), {"lines": 4})
    assert (found.kind, found.seen) == (
        "StateDivergence",
        dict(zip(("acked", "ended"), acked, strict=True)),
    )


def test_one_that_has_noted_nothing_is_not(tmp_path: Path) -> None:
    notes(Layout(tmp_path))
    (found,) = check_sent(Layout(tmp_path), {"lines": 0})
    assert found.seen == {"acked": 0, "ended": False}
    (found,) = check_sent(Layout(tmp_path), {"words": 1})
    assert "No such file" in str(found.seen)


def test_notes_of_another_stream_are_none(tmp_path: Path) -> None:
    notes(Layout(tmp_path), (4, True))
    Layout(tmp_path).acked("lines").rename(Layout(tmp_path).acked("words"))
    (found,) = check_sent(Layout(tmp_path), {"words": 4})
    assert "is about stream 'lines'" in str(found.seen)


@pytest.mark.parametrize(
    ("fault", "streams"),
    [
        ("{power-cut: {node: sender, after: sender.send/lines/end}}", {"words"}),
        ("{power-cut: {node: gateway, after: gateway.ack/lines/end}}", {"lines", "words"}),
        ("{storage: {node: sender, after: sender.send/lines/end, call: 1}}", {"lines", "words"}),
        ("{crash-writing: {node: sender, at: sender.forget/lines/end}}", {"lines", "words"}),
    ],
)
def test_only_what_a_power_cut_has_taken_need_not_be_noted(fault: str, streams: set[str]) -> None:
    """Whose disk has failed is told so, and makes the note when it is started again."""
    faults = Schedule.parse(f"faults: [{fault}]").faults
    assert to_be_noted({"lines": "sender", "words": "sender-words"}, faults) == streams


def test_a_note_that_ends_in_the_torn_line_of_one_before_is_none(tmp_path: Path) -> None:
    file = Layout(tmp_path).acked("lines")
    file.write_bytes(b'{"stream": "lines", "ack{"stream": "lines", "acked": 4, "ended": true}\n')
    assert check_sent(Layout(tmp_path), {"lines": 4})
