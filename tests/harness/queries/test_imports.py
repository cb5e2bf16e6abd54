"""A module that is changed as soon as it is there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from bettong.harness.queries.sink.imports import when_imported

MODULES = {"bettong_test_one": "import bettong_test_other\n", "bettong_test_other": ""}


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield sys.path
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("zipped", [True, False])
def test_it_is_that_module_alone_in_a_folder_and_in_a_zip_file(
    path: list[str], tmp_path: Path, zipped: bool
) -> None:
    """spark-submit has PySpark in a zip file, of which all modules have one loader."""
    if zipped:
        with ZipFile(tmp_path / "all.zip", "w") as file:
            for name, text in MODULES.items():
                file.writestr(f"{name}.py", text)
    else:
        for name, text in MODULES.items():
            (tmp_path / f"{name}.py").write_text(text)
    path.insert(0, str(tmp_path / "all.zip" if zipped else tmp_path))
    importlib.invalidate_caches()
    changed: list[str] = []
    when_imported("bettong_test_one", lambda module: changed.append(module.__name__))
    importlib.import_module("bettong_test_one")
    assert changed == ["bettong_test_one"]
    assert "bettong_test_other" in sys.modules


def test_one_that_is_there_already_is_changed_at_once() -> None:
    changed: list[str] = []
    when_imported("json", lambda module: changed.append(module.__name__))
    assert changed == ["json"]
