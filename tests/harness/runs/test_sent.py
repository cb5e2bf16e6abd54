"""What senders have noted in the end: judged by the files that they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.engine.ingest.acked import AckedFile
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.sent import check_sent


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
