"""Damage of small stored files is found and named: the folder source's index, epochs of sinks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bettong.engine.errors import FencedError
from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver.ledger import EPOCH_STEP, Ledger
from bettong.engine.sinks.base import Noted
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.storage.log import DamageError
from bettong.lineage.trace import MessageRange

QUIET = Noted("")


def damages(content: bytes, count: int) -> list[bytes]:
    """One bit, one byte, a cut, a doubled piece, or nothing left."""
    draw = random.Random(len(content))
    found = [b"", content[:-1], content + b"\n", content * 2]
    for _ in range(count):
        at = draw.randrange(len(content))
        flipped = bytes([content[at] ^ 1 << draw.randrange(8)])
        found += [
            content[:at] + flipped + content[at + 1 :],
            content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
            content[:at],
            content[:at] + content[at + 1 :],
        ]
    return [other for other in found if other != content]


def test_every_damage_of_the_index_is_named(tmp_path: Path) -> None:
    folder, index = tmp_path / "in", tmp_path / "index"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(f"{name}1\n{name}2\n")
    source = DirectorySource(folder, index)
    assert source.extent(6, 0).end == 6
    whole = source.read(MessageRange("lines", 0, 6), "", ())
    entry = index / "000000001.json"
    content = entry.read_bytes()
    for damaged in damages(content, 60):
        entry.write_bytes(damaged)
        with pytest.raises(DamageError, match="000000001"):
            source.read(MessageRange("lines", 0, 6), "", ())
    entry.unlink()
    with pytest.raises(DamageError, match="is missing"):
        source.read(MessageRange("lines", 0, 6), "", ())
    entry.write_bytes(content)
    assert source.read(MessageRange("lines", 0, 6), "", ()) == whole


def test_every_damage_of_an_epoch_of_a_sink_is_named(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out")
    sink.open("app", 1, QUIET)
    epoch = tmp_path / "out" / "_epochs" / "epoch-1"
    content = epoch.read_bytes()
    for damaged in damages(content, 20):
        epoch.write_bytes(damaged)
        with pytest.raises(DamageError, match="epoch-1"):
            sink.open("app", 2, QUIET)
    epoch.write_bytes(content)
    sink.open("app", 2, QUIET)
    with pytest.raises(FencedError):
        sink.open("app", 1, QUIET)


def test_an_epoch_far_ahead_fences_nobody(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "app", "app")
    for far in (EPOCH_STEP + 1, 2**64 - 1):
        with pytest.raises(RefusedError, match="too far ahead"):
            ledger.open(far)
    ledger.open(3)
    for far in (3 + EPOCH_STEP + 1, 2**64 - 1):
        with pytest.raises(RefusedError, match="too far ahead"):
            ledger.open(far)
    ledger.open(4)
    ledger.open(4 + EPOCH_STEP)
    ledger.close()
