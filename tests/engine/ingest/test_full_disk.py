"""A sender on a full disk gives up at any start: it is set up well, and may go on later."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bettong.engine.ingest.sender import GAVE_UP, main


def test_a_sender_that_is_started_on_a_full_disk_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, acked = tmp_path / "lines", tmp_path / "acked"
    lines.write_text("a\n")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    given = ["--gateway", "127.0.0.1:1", "--stream", "lines", "--input", str(lines)]
    assert main([*given, "--acked", str(acked)]) == GAVE_UP


def test_a_sender_whose_notes_cannot_be_opened_is_set_up_wrongly(tmp_path: Path) -> None:
    given = ["--gateway", "127.0.0.1:1", "--stream", "lines", "--input", str(tmp_path / "lines")]
    assert main([*given, "--acked", str(tmp_path / "missing" / "acked")]) == 2
