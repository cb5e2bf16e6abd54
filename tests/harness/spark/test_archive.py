"""The archives of class data of a machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bettong.harness.spark import archive, jar
from bettong.harness.spark.archive import archive_path, current_archive, forget_unused
from bettong.harness.spark.cache import ENV_CACHE


def test_archives_that_nobody_has_used_for_long_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENV_CACHE, str(tmp_path))
    monkeypatch.setattr(archive, "archive_path", lambda: tmp_path / "classes-3.jsa")
    names = ("classes-1.jsa", "classes-2.jsa", "classes-3.jsa", "hooks-1.jar")
    now = time.time()
    for name, days in zip(names, (31, 29, 400, 400), strict=True):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (now, now - days * 24 * 3600))
    assert current_archive() == tmp_path / "classes-3.jsa"
    forget_unused()
    assert sorted(path.name for path in tmp_path.iterdir()) == list(names[1:])


def test_where_spark_was_installed_again_the_archive_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files with the same names: a JVM would silently do without the one that is there."""
    monkeypatch.setenv(ENV_CACHE, str(tmp_path / "cache"))
    hooks = jar.Hooks(tmp_path / "hooks.jar", ())
    monkeypatch.setattr(jar, "hooks", lambda: hooks)
    monkeypatch.setattr(jar, "spark_home", lambda: tmp_path)
    (tmp_path / "jars").mkdir()
    for path in (hooks.path, tmp_path / "jars" / "spark-core.jar"):
        path.touch()
    before = archive_path()
    assert archive_path() == before
    os.utime(tmp_path / "jars" / "spark-core.jar", (1, 1))
    assert archive_path() != before


def test_without_an_archive_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_CACHE, str(tmp_path))
    assert archive_path().parent == tmp_path
    assert current_archive() is None
