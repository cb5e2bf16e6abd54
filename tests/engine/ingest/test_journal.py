"""The journal of one stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.net.errors import RefusedError
from bettong.engine.storage.disk import AppendFile
from bettong.engine.storage.log import DamageError
from bettong.engine.storage.simulated import Image, SimulatedDisk

HOME = Path("/streams/lines")


def opened(disk: SimulatedDisk, segment_bytes: int = 150) -> Journal:
    return Journal(HOME, "lines", segment_bytes=segment_bytes, disk=disk)


def block(first: int, count: int) -> Block:
    return Block.of([b"message %d" % n for n in range(first, first + count)])


def content(journal: Journal, start: int | None = None, stop: int | None = None) -> list[bytes]:
    begin = journal.base if start is None else start
    pieces = list(journal.read(begin, journal.end if stop is None else stop))
    starts = [piece.start for piece in pieces]
    assert starts == sorted(set(starts))
    return [payload for piece in pieces for payload in piece.messages.payloads()]


def small() -> Image:
    disk = SimulatedDisk()
    journal = opened(disk)
    for first in range(0, 8, 2):
        journal.append(block(first, 2))
    journal.release(3)
    journal.finish()
    return disk.image()


@given(st.lists(st.lists(st.binary(max_size=30), min_size=1, max_size=5), max_size=12), st.data())
def test_any_range_reads_what_was_appended(frames: list[list[bytes]], data: st.DataObject) -> None:
    disk = SimulatedDisk()
    journal = opened(disk)
    for frame in frames:
        journal.append(Block.of(frame))
    messages = [message for frame in frames for message in frame]
    for each in (journal, opened(SimulatedDisk(disk.image()))):
        assert each.end == len(messages)
        start = data.draw(st.integers(0, len(messages)))
        stop = data.draw(st.integers(start, len(messages)))
        assert content(each, start, stop) == messages[start:stop]
        lasts = [piece.last for piece in each.read(start, stop)]
        ends = [sum(map(len, frames[: n + 1])) - 1 for n in range(len(frames))]
        assert set(lasts) <= set(ends), "whole frames are named"


def test_a_release_drops_whole_segments_only() -> None:
    disk = SimulatedDisk()
    journal = opened(disk, 300)
    for n in range(30):
        journal.append(block(n, 1))
    segments = len(disk.image())
    journal.release(17)
    assert 0 < journal.base <= 17 < journal.end == 30
    assert len(disk.image()) < segments
    expected = [b"message %d" % n for n in range(30)]
    assert content(journal) == expected[journal.base :]
    with pytest.raises(RefusedError, match="not all of 0 to 3"):
        list(journal.read(0, 3))
    again = opened(SimulatedDisk(disk.image()))
    assert (again.base, again.end, again.released) == (journal.base, 30, 17)
    assert content(again) == expected[journal.base :]


def test_numbers_go_on_after_everything_was_released() -> None:
    disk = SimulatedDisk()
    journal = opened(disk)
    for n in range(10):
        journal.append(block(n, 1))
    journal.release(10)
    again = opened(SimulatedDisk(disk.image()))
    assert (again.end, again.released) == (10, 10)
    again.append(block(10, 1))
    assert content(again, 10, 11) == [b"message 10"]


def test_what_was_released_before_the_first_segment_is_known_after_a_restart() -> None:
    disk = SimulatedDisk()
    journal = opened(disk, segment_bytes=1)
    journal.append(block(0, 1))
    journal.release(1)
    for first in (1, 2, 3):
        journal.append(block(first, 1))
    journal.release(
        2
    )  # noted in the last segment; the first that stays begins after the one before
    again = opened(SimulatedDisk(disk.image()), segment_bytes=1)
    assert (again.base, again.released, again.end) == (2, 2, 4)
    assert content(again) == [b"message 2", b"message 3"]


def test_the_end_is_durable_and_final() -> None:
    journal = opened(SimulatedDisk(small()))
    assert journal.ended
    with pytest.raises(RefusedError, match="has ended at 8"):
        journal.append(block(8, 1))


def test_nothing_beyond_the_end_is_released() -> None:
    journal = opened(SimulatedDisk(small()))
    with pytest.raises(RefusedError, match="ends at 8"):
        journal.release(9)


def test_every_flipped_byte_is_found() -> None:
    image = small()
    for path, data in image.items():
        for place in range(len(data)):
            for flip in (0x01, 0x80, 0xFF):
                damaged = bytearray(data)
                damaged[place] ^= flip
                with pytest.raises(DamageError, match=r"segment-\d+\.log"):
                    opened(SimulatedDisk(image | {path: bytes(damaged)}))


def test_every_cut_is_found_or_takes_whole_frames_off_the_end() -> None:
    image = small()
    for path, data in image.items():
        for size in range(len(data)):
            try:
                journal = opened(SimulatedDisk(image | {path: data[:size]}))
            except DamageError:
                continue
            assert path == max(image)
            assert journal.end % 2 == 0
            assert content(journal) == [b"message %d" % n for n in range(journal.base, journal.end)]


def test_segments_that_were_not_released_must_be_there() -> None:
    disk = SimulatedDisk()
    journal = opened(disk)
    for n in range(10):
        journal.append(block(n, 1))
    image = disk.image()
    with pytest.raises(DamageError, match="are missing"):
        opened(SimulatedDisk({path: data for path, data in image.items() if path != min(image)}))


def test_a_journal_of_another_stream_is_refused() -> None:
    with pytest.raises(DamageError, match="'lines'"):
        Journal(HOME, "words", disk=SimulatedDisk(small()))


def test_damage_after_the_start_is_found_when_it_is_read() -> None:
    disk = SimulatedDisk()
    journal = opened(disk, 10_000)
    journal.append(block(0, 3))
    path, data = next(iter(disk.image().items()))
    disk.append_to(path).truncate(len(data) - 5)
    disk.append_to(path).write(b"other")
    with pytest.raises(DamageError, match=path.name):
        content(journal)


def test_no_crash_loses_what_was_promised() -> None:
    promised = {"end": 0, "released": 0, "ended": False}
    checked = 0

    def check() -> None:
        nonlocal checked
        for image in disk.images():
            again = SimulatedDisk(image)
            journal = opened(again)
            assert promised["end"] <= journal.end <= promised["end"] + 2
            assert journal.released >= promised["released"] >= 0
            assert journal.base <= max(journal.released, 0)
            assert journal.ended >= promised["ended"]
            assert content(journal) == [b"message %d" % n for n in range(journal.base, journal.end)]
            if not journal.ended:
                journal.append(block(journal.end, 1))
                assert opened(SimulatedDisk(again.image())).end == journal.end
            checked += 1

    def done(what: str, value: int, action: Callable[[], None]) -> None:
        action()
        promised[what] = value

    disk = SimulatedDisk(on_change=check)
    journal = opened(disk)
    for first in range(0, 8, 2):
        done("end", first + 2, lambda n=first: journal.append(block(n, 2)))  # type: ignore[misc]
        done("released", first + 1, lambda n=first: journal.release(n + 1))  # type: ignore[misc]
    done("ended", True, journal.finish)
    assert checked > 500


def test_memory_is_bounded_by_a_sparse_index() -> None:
    journal = opened(SimulatedDisk(), 1 << 30)
    for n in range(3000):
        journal.append(block(n, 1))
    assert len(journal._index) <= 3
    assert content(journal, 2990, 2992) == [b"message 2990", b"message 2991"]


class Forgetful(SimulatedDisk):
    """Says that it has synced."""

    def append_to(self, path: Path) -> Unsynced:  # type: ignore[override]
        return Unsynced(super().append_to(path))


class Unsynced:
    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def sync(self) -> None:
        pass


def test_the_simulation_shows_a_sync_that_is_missing() -> None:
    disk = Forgetful()
    opened(disk).append(block(0, 2))
    found = set()
    for image in disk.images():
        try:
            found.add(opened(SimulatedDisk(image)).end)
        except DamageError:
            found.add(-1)
    assert found > {2}


def test_no_failure_of_the_disk_loses_or_doubles_a_message() -> None:
    """The n-th operation is done, but said to have failed; what was asked is asked again."""
    for n in range(1, 1000):
        left = n

        def fail() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(5, "Input/output error")

        disk = SimulatedDisk()
        journal = opened(disk)
        disk._on_change = fail
        for first in range(0, 8, 2):
            for upto, action in ((first + 2, "append"), (first + 1, "release")):
                while (journal.end if action == "append" else journal.released) < upto:
                    try:
                        if action == "append":
                            journal.append(block(first, 2))
                        else:
                            journal.release(upto)
                    except OSError as e:
                        if "closed" in str(e):
                            journal = opened(disk)
        for found in (journal, opened(SimulatedDisk(disk.image()))):
            assert (found.end, found.released) == (8, 7)
            assert content(found) == [b"message %d" % k for k in range(found.base, 8)]
        if left > 0:
            break
    assert n > 20
