"""What a disk that fails says."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.engine import steps
from bettong.engine.storage.disk import OS_DISK, AppendFile, replace_file
from bettong.lineage.trace import TraceEvent


@pytest.mark.parametrize(
    ("call", "act"),
    [
        ("write", lambda file: file.write(b"row")),
        ("fsync", lambda file: file.sync()),
        ("ftruncate", lambda file: file.truncate(0)),
    ],
)
def test_a_call_that_fails_says_for_which_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    act: Callable[[AppendFile], None],
) -> None:
    """The system does not, where it is told a descriptor alone."""
    file = OS_DISK.append_to(tmp_path / "log")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        act(file)
    assert raised.value.filename == str(tmp_path / "log")
    file.close()


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_file_that_cannot_be_replaced_is_as_it_was_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    replace_file(tmp_path / "epoch", b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left on device"):
            replace_file(tmp_path / "epoch", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["epoch"]
    assert (tmp_path / "epoch").read_bytes() == b"old"


class Told:
    """A recorder that has the second thing which is read within ``one`` fail."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def notify(self, event: TraceEvent) -> None:
        self.events.append(event)
        if (event.step, event.phase) == ("one", "before"):
            steps._present.orders = steps.Orders(errno=errno.EIO, read=2)


def test_what_cannot_be_read_fails_where_it_is_opened_and_is_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file(tmp_path / "epoch", b"old")
    told = Told()
    monkeypatch.setattr(steps, "_recorder", told)
    monkeypatch.setattr(steps, "_present", threading.local())
    with steps.step("one"):
        assert OS_DISK.names(tmp_path) == ["epoch"]
        replace_file(tmp_path / "note", b"new")
        with pytest.raises(OSError, match="Input/output error") as raised:
            OS_DISK.open(tmp_path / "epoch")
        assert raised.value.filename == str(tmp_path / "epoch")
        with steps.step("within"), OS_DISK.open(tmp_path / "note") as file:
            assert file.read() == b"new"
        OS_DISK.open(tmp_path / "epoch").close()
    with steps.step("two"):
        pass
    reads = [e.detail["disk"] for e in told.events if "reads" in e.detail.get("disk", {})]
    assert [(report["after"], report["reads"]) for report in reads] == [
        ("before one", [tmp_path.name, "epoch"]),
        ("before within", ["note"]),
        ("before one", ["epoch"]),
    ]
    (failed,) = (e for e in told.events if e.step == "disk-fault/one")
    assert failed.detail == {"call": 2, "operation": "read", "path": "epoch"}
