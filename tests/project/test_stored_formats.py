"""Whatever happens to a stored file: a clear error that names it, or what it said before."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from stored_formats import FORMATS, Format, damages, edges_of

from bettong.lineage.errors import BettongError

LIKE_A_CRASH = {
    "emptied",
    "zeroed",
    "cut",
    "cut at a record",
    "zero block",
    "record removed",
}
"""Damages that at a file's end are what a crash may leave there."""


def wrong(form: Format, folder: Path, file: Path, kind: str, meaning: Any) -> str:
    """What is wrong with how a damaged folder is read; empty when nothing is."""
    try:
        found = form.meaning(folder)
    except BettongError as e:
        named = file.name in str(e) or file.stem in str(e) or file.parent.name in str(e)
        return "" if named and "\n" not in str(e) else f"does not name {file.name}: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    if found == meaning:
        return ""
    if form.cut_is_a_crash and kind in LIKE_A_CRASH and found == meaning[: len(found)]:
        return ""
    return f"silently other: {str(found)[:200]}"


def check(form: Format, root: Path, count: int, most: int) -> list[str]:
    whole, work = root / "whole", root / "work"
    whole.mkdir()
    form.write(whole)
    shutil.copytree(whole, work)
    meaning = form.meaning(work)
    assert meaning, "a format that says nothing proves nothing"
    kinds = {pattern: list(whole.glob(pattern)) for pattern in form.files}
    assert all(kinds.values()), f"kinds of files that are not there: {kinds}"
    files = sorted(file for found in kinds.values() for file in found)
    drawn = [
        (file, kind, damaged)
        for number, file in enumerate(files)
        for content in [file.read_bytes()]
        for kind, damaged in damages(content, edges_of(file, content), number, count)
        if damaged != content
    ]
    bad = []
    for file, kind, damaged in random.Random(1).sample(drawn, min(most, len(drawn))):
        shutil.rmtree(work)
        shutil.copytree(whole, work)
        (work / file.relative_to(whole)).write_bytes(damaged)
        if said := wrong(form, work, file, kind, meaning):
            bad.append(f"{file.relative_to(whole)}, {kind}: {said}")
    return bad


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_a_sample_of_damages_is_found_or_changes_nothing(form: Format, tmp_path: Path) -> None:
    assert check(form, tmp_path, 2, 8) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_damages_are_found_or_change_nothing(form: Format, tmp_path: Path) -> None:
    assert check(form, tmp_path, 40, 500) == []
