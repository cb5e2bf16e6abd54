"""The record log: damage is found wherever it is, crashes lose nothing that was durable."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.storage.log import DamageError, Record, RecordLog
from bettong.engine.storage.simulated import Image, SimulatedDisk

HOME = Path("/log")


class Owner:
    """A log whose head says how many records came before."""

    def __init__(self, disk: SimulatedDisk, segment_bytes: int = 100) -> None:
        self.records: list[tuple[int, int, bytes]] = []
        self.log = RecordLog(
            HOME,
            head=lambda: b"%d" % len(self.records),
            on_head=lambda head: None,
            visit=self.visit,
            segment_bytes=segment_bytes,
            disk=disk,
        )

    def visit(self, record: Record) -> None:
        self.records.append((record.kind, record.tag, record.body))

    def append(self, kind: int, tag: int, body: bytes) -> None:
        self.log.roll_when_full()
        self.log.append(kind, tag, body)
        self.records.append((kind, tag, body))


def written(count: int = 6) -> tuple[Image, list[tuple[int, int, bytes]]]:
    disk = SimulatedDisk()
    owner = Owner(disk)
    for number in range(count):
        owner.append(1 + number % 2, number, b"body %d\0" % number * (number + 1))
    return disk.image(), owner.records


@given(st.lists(st.tuples(st.integers(1, 255), st.integers(0, 2**64 - 1), st.binary(max_size=60))))
def test_what_is_appended_is_read_back(records: list[tuple[int, int, bytes]]) -> None:
    disk = SimulatedDisk()
    owner = Owner(disk)
    for record in records:
        owner.append(*record)
    assert Owner(SimulatedDisk(disk.image())).records == records


def test_a_removal_that_was_done_and_is_said_to_have_failed_holds_up_no_later_one() -> None:
    failing = False

    def fail() -> None:
        if failing:
            raise OSError(errno.EIO, "Input/output error")

    disk = SimulatedDisk(on_change=fail)
    owner = Owner(disk, segment_bytes=1)
    for number in range(4):
        owner.append(1, number, b"body")
    failing = True
    with pytest.raises(OSError, match="Input/output error"):
        owner.log.drop_before(3)
    failing = False
    owner.log.drop_before(4)
    assert owner.log.segments == [4, 5]
    assert disk.names(HOME) == ["segment-00000004.log", "segment-00000005.log"]


def test_every_flipped_bit_is_found() -> None:
    image, _ = written()
    assert len(image) > 2
    for path, content in image.items():
        for place in range(len(content)):
            for bit in range(8):
                flipped = bytearray(content)
                flipped[place] ^= 1 << bit
                with pytest.raises(DamageError, match=path.name):
                    Owner(SimulatedDisk(image | {path: bytes(flipped)}))


def test_a_cut_is_found_or_is_a_torn_tail() -> None:
    image, records = written()
    last = max(image)
    for path, content in image.items():
        for size in range(len(content)):
            disk = SimulatedDisk(image | {path: content[:size]})
            try:
                found = Owner(disk).records
            except DamageError:
                continue
            assert path == last
            assert found == records[: len(found)]


def test_a_segment_that_is_missing_or_renamed_is_found() -> None:
    image, _ = written()
    paths = sorted(image)
    without = {path: content for path, content in image.items() if path != paths[1]}
    with pytest.raises(DamageError, match=r"segment-00000002\.log is missing"):
        Owner(SimulatedDisk(without))
    with pytest.raises(DamageError, match="renamed"):
        Owner(SimulatedDisk({paths[0]: image[paths[1]]}))


def test_zeros_after_the_last_record_are_a_torn_tail() -> None:
    image, records = written()
    last = max(image)
    for count in (1, 20, 21, 22, 50):
        disk = SimulatedDisk(image | {last: image[last] + bytes(count)})
        assert Owner(disk).records == records
        assert disk.image() == image, "the tail is cut"


def test_other_bytes_after_the_last_record_are_damage() -> None:
    image, _ = written()
    last = max(image)
    with pytest.raises(DamageError):
        Owner(SimulatedDisk(image | {last: image[last] + bytes(30) + b"x"}))


def test_no_crash_loses_a_durable_record() -> None:
    checked = 0

    def check() -> None:
        nonlocal checked
        for image in disk.images():
            again = SimulatedDisk(image)
            found = Owner(again).records
            assert done <= len(found) <= done + 1
            assert found == wanted[: len(found)]
            assert Owner(SimulatedDisk(again.image())).records == found, "recovery is stable"
            checked += 1

    wanted = written()[1]
    done = 0
    disk = SimulatedDisk(on_change=check)
    owner = Owner(disk)
    for done, record in enumerate(wanted):  # noqa: B007 (check reads it)
        owner.append(*record)
    assert checked > 500


class FailingFile:
    def __init__(self, disk: FailingDisk, file: object) -> None:
        self._disk, self._file = disk, file

    def __getattr__(self, name: str) -> object:
        if name in self._disk.fails:
            raise OSError(28, "No space left on device")
        return getattr(self._file, name)


class FailingDisk(SimulatedDisk):
    fails: Collection[str] = ()

    def append_to(self, path: Path) -> FailingFile:  # type: ignore[override]
        return FailingFile(self, super().append_to(path))


@pytest.mark.parametrize(
    "operations", [("write",), ("sync",), ("sync", "truncate"), ("write", "sync", "truncate")]
)
def test_a_failed_append_leaves_the_log_as_it_was(operations: Sequence[str]) -> None:
    """Also where the disk does not allow that at first: it is done before the next record."""
    disk = FailingDisk()
    owner = Owner(disk)
    owner.append(1, 0, b"kept")
    before = disk.image()
    for tried in (b"lost", b"lost again"):
        disk.fails = operations
        with pytest.raises(OSError, match="No space"):
            owner.log.append(1, 1, tried)
        disk.fails = ()
    assert len(before) == len(disk.image())
    owner.append(1, 1, b"next")
    assert Owner(SimulatedDisk(disk.image())).records == owner.records


def test_a_segment_is_followed_by_another_once_nothing_is_left_behind_its_last_record() -> None:
    disk = FailingDisk()
    owner = Owner(disk, segment_bytes=1)
    owner.append(1, 0, b"kept")
    disk.fails = ("sync", "truncate")
    with pytest.raises(OSError, match="No space"):
        owner.log.append(1, 1, b"lost")
    with pytest.raises(OSError, match="No space"):
        owner.log.roll_when_full()
    disk.fails = ()
    owner.log.roll_when_full()
    owner.append(1, 1, b"next")
    assert Owner(SimulatedDisk(disk.image())).records == owner.records


@pytest.mark.parametrize("operation", ["rename", "remove", "sync_directory"])
def test_a_segment_that_was_not_begun_is_none(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may be there all the same, and the one before it goes on."""

    def fail(*_: Path) -> None:
        called(*_)
        raise OSError(5, "Input/output error")

    disk = SimulatedDisk()
    owner = Owner(disk, segment_bytes=1)
    owner.append(1, 0, b"kept")
    called = getattr(disk, operation)
    with monkeypatch.context() as patch:
        patch.setattr(disk, operation, fail)
        with contextlib.suppress(OSError):
            owner.log.roll_when_full()
    owner.log.append(1, 1, b"behind it")
    wanted = [(1, 0, b"kept"), (1, 1, b"behind it")]
    assert [Owner(SimulatedDisk(image)).records for image in disk.images()] == [wanted]
    owner.append(1, 2, b"in the next one")
    assert Owner(SimulatedDisk(disk.image())).records == [*wanted, (1, 2, b"in the next one")]


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_segment_that_was_not_begun_leaves_no_file(operation: str) -> None:
    """Nobody may begin one again: what was begun for more is not always followed by more."""
    disk = FailingDisk()
    owner = Owner(disk, segment_bytes=1)
    before = disk.names(HOME)
    disk.fails = (operation,)
    with pytest.raises(OSError, match="No space"):
        owner.log.roll_when_full()
    disk.fails = ()
    assert disk.names(HOME) == before
    owner.append(1, 0, b"in the next one")
    assert Owner(SimulatedDisk(disk.image())).records == owner.records
