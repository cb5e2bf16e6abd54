"""Spark's notes as the engine reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.spark.notes import SparkNotes
from bettong.engine.storage.log import DamageError


def notes(folder: Path, planned: int, done: int) -> SparkNotes:
    for log, count in (("offsets", planned), ("commits", done)):
        (folder / log).mkdir(exist_ok=True)
        for batch in range(count):
            end = {"batch": batch + 1, "streams": {"lines": 20 * batch}}
            text = json.dumps(end) if log == "offsets" else "{}"
            (folder / log / str(batch)).write_text(f"v1\n{{}}\n{text}")
            (folder / log / f".{batch}.crc").write_bytes(b"crc\0")
    return SparkNotes(folder)


def test_what_is_planned_and_what_is_done(tmp_path: Path) -> None:
    found = notes(tmp_path, 0, 0)
    assert (found.last_planned, found.last_done, found.done()) == (-1, -1, None)
    found = notes(tmp_path, 12, 11)
    assert (found.last_planned, found.last_done) == (11, 10)
    assert found.is_done(10)
    assert not found.is_done(11)
    assert found.done() == {"batch": 11, "streams": {"lines": 200}}


def test_sparks_first_batch_may_have_been_none_of_ours(tmp_path: Path) -> None:
    found = notes(tmp_path, 2, 1)
    for batch in (0, 1):
        end = {"batch": batch, "streams": {"lines": 8 * batch}}
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
    assert found.done() == {"batch": 0, "streams": {"lines": 0}}
    assert found.end_of(1) == {"batch": 1, "streams": {"lines": 8}}


@pytest.mark.parametrize("batch", [-1, 0, 1, 4, 100])
def test_a_note_of_another_batch_is_damaged(tmp_path: Path, batch: int) -> None:
    found = notes(tmp_path, 3, 3)
    end = {"batch": batch, "streams": {"lines": 40}}
    (tmp_path / "offsets" / "2").write_text(f"v1\n{{}}\n{json.dumps(end)}")
    with pytest.raises(DamageError, match="is damaged"):
        found.done()


def test_only_a_checkpoint_without_batches_is_tidied_up(tmp_path: Path) -> None:
    found = notes(tmp_path, 0, 0)
    unwritten = tmp_path / "offsets" / ".0.1234.tmp"
    unwritten.write_text("")
    found.remove_unwritten()
    assert not unwritten.exists()
    unwritten.write_text("")
    notes(tmp_path, 1, 0).remove_unwritten()
    assert unwritten.exists()


@given(st.one_of(st.binary(), st.integers(0, 100)))
def test_a_note_that_cannot_be_read_is_named(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes | int
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    found = notes(folder, 1, 1)
    path = folder / "offsets" / "0"
    whole = path.read_bytes()
    path.write_bytes(damage if isinstance(damage, bytes) else whole[: damage % len(whole)])
    with pytest.raises(DamageError, match=f"{path} is damaged"):
        found.done()
