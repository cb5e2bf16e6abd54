"""Where temporary folders are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bettong.harness.processes import folders


def with_room(monkeypatch: pytest.MonkeyPatch, path: Path, free: int) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(folders, "_MEMORY", path)
    usage = shutil.disk_usage(path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


def test_memory_is_used_where_it_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_room(monkeypatch, tmp_path, 8 << 30)
    assert folders.folder_in_memory() == tmp_path
    with_room(monkeypatch, tmp_path, 64 << 20)
    assert folders.folder_in_memory() is None


def test_the_users_folder_for_temporary_files_is_kept_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_room(monkeypatch, tmp_path, 8 << 30)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert folders.folder_in_memory() is None


def test_without_such_a_file_system_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_room(monkeypatch, tmp_path, 8 << 30)
    monkeypatch.setattr(folders, "_MEMORY", tmp_path / "none")
    assert folders.folder_in_memory() is None
