"""What a disk that fails says."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.engine.storage.disk import OS_DISK, AppendFile, replace_file


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
