"""Micro-batches that are landed: each once, whatever is done again, and in one order for good."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pyarrow as pa
import pytest
from folder_sink import FolderSink
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import interpret
from bettong.engine.config import RunConfig
from bettong.engine.errors import MissingError
from bettong.engine.in_process import run_in_process
from bettong.engine.sources.landed import LandedFolder, LandedSource
from bettong.engine.storage.disk import OsDisk
from bettong.engine.storage.log import DamageError
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange
from bettong.scenarios.applications import word_count

HOME = Path("/landed")
QUERY = "1"
BATCHES = st.lists(st.lists(st.binary(max_size=6), max_size=4), min_size=1, max_size=6)


def array(messages: list[bytes]) -> pa.Array:
    return pa.array(messages, pa.binary())


def found(folder: LandedFolder) -> list[bytes]:
    extent = folder.extent()
    messages: list[bytes] = folder.read(extent.begin, extent.end).to_pylist()
    return messages


@given(BATCHES, st.randoms(use_true_random=False))
def test_a_batch_that_comes_again_changes_nothing(
    batches: list[list[bytes]], draw: random.Random
) -> None:
    folder = LandedFolder(HOME, SimulatedDisk())
    for number, messages in enumerate(batches):
        folder.put(QUERY, number, array(messages))
        folder.put(QUERY, number, array(draw.sample(messages, len(messages))))
    flat = [message for messages in batches for message in messages]
    assert folder.extent() == (len(flat), False, 0)
    start = draw.randint(0, len(flat))
    stop = draw.randint(start, len(flat))
    assert folder.read(start, stop).to_pylist() == flat[start:stop]


@given(BATCHES, st.data())
def test_what_is_released_is_removed_and_the_rest_keeps_its_numbers(
    batches: list[list[bytes]], data: st.DataObject
) -> None:
    disk = SimulatedDisk()
    folder = LandedFolder(HOME, disk)
    flat: list[bytes] = []
    upto = 0
    for number, messages in enumerate(batches):
        folder.put(QUERY, number, array(messages))
        flat += messages
        upto = data.draw(st.integers(upto, len(flat)))
        folder.remove(upto)
        extent = folder.extent()
        assert extent.begin <= upto
        assert folder.read(extent.begin, extent.end).to_pylist() == flat[extent.begin :]
        assert folder.read(upto, extent.end).to_pylist() == flat[upto:]
    folder.remove(len(flat))
    assert len(disk.names(HOME)) == 1, "the newest says where the next begins"


def test_no_crash_loses_or_doubles_a_message() -> None:
    batches = [[b"a", b"b"], [], [b"c", b"d"]]
    tried: set[frozenset[tuple[Path, bytes]]] = set()
    landed = 0

    def check() -> None:
        for image in disk.images():
            if frozenset(image.items()) in tried:
                continue
            tried.add(frozenset(image.items()))
            again = LandedFolder(HOME, SimulatedDisk(image))
            seen = found(again)
            whole = [message for batch in batches[:landed] for message in batch]
            assert seen in (whole, [*whole, *batches[landed]])
            for number in range(landed, 3):
                again.put(QUERY, number, array(batches[number][::-1]))
            late = found(again)
            assert late[: len(seen)] == seen, "what was seen once stays"
            assert sorted(late) == [b"a", b"b", b"c", b"d"]

    disk = SimulatedDisk()
    folder = LandedFolder(HOME, disk)
    disk._on_change = check
    for landed in range(3):
        folder.put(QUERY, landed, array(batches[landed]))
    assert len(tried) > 20


@pytest.mark.parametrize("again", ["looked at", "landed again"])
def test_what_a_killed_driver_left_is_durable_before_anyone_relies_on_it(again: str) -> None:
    """It was killed between the making of the file and the waiting for its name."""

    class Killed(BaseException):
        pass

    class Dies(SimulatedDisk):
        def link(self, source: Path, target: Path) -> None:
            super().link(source, target)
            raise Killed

    home = Path("/left") / again.replace(" ", "-")
    disk = Dies()
    with pytest.raises(Killed):
        LandedFolder(home, disk).put(QUERY, 0, array([b"a"]))
    name = home / "batch-000000000000.landed"
    assert name in disk.image()
    assert any(name not in image for image in disk.images()), "a power cut could still take it"
    folder = LandedFolder(home, disk)
    if again == "looked at":
        assert folder.extent() == (1, False, 0)
    else:
        folder.put(QUERY, 0, array([b"a"]))
    assert all(name in image for image in disk.images())


def test_no_crash_amid_removal_makes_numbers_begin_anew() -> None:
    disk = SimulatedDisk()
    folder = LandedFolder(HOME, disk)
    for number in range(4):
        folder.put(QUERY, number, array([b"%d" % number]))
    tried = 0

    def check() -> None:
        nonlocal tried
        for image in disk.images():
            again = LandedFolder(HOME, SimulatedDisk(image))
            assert again.extent().begin <= 3
            assert again.read(3, 4).to_pylist() == [b"3"]
            again.put(QUERY, 4, array([b"4"]))
            again.remove(3)
            assert again.extent() == (5, False, 3)
            assert again.read(3, 5).to_pylist() == [b"3", b"4"]
            tried += 1

    disk._on_change = check
    folder.remove(3)
    assert tried > 8


def test_of_two_drivers_that_land_a_batch_one_does(tmp_path: Path) -> None:
    class Slow(OsDisk):
        """Lets another driver land the batch just before this one makes its file."""

        def link(self, source: Path, target: Path) -> None:
            LandedFolder(tmp_path).put(QUERY, 0, array([b"b", b"a"]))
            super().link(source, target)

    LandedFolder(tmp_path, Slow()).put(QUERY, 0, array([b"a", b"b"]))
    assert found(LandedFolder(tmp_path)) == [b"b", b"a"]


def test_a_new_checkpoint_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    for number in range(3):
        folder.put(QUERY, number, array([b"x"]))
    with pytest.raises(UsageError, match="messages of the query 1, and this is 2"):
        folder.put("2", 0, array([b"y"]))
    with pytest.raises(UsageError, match="messages of the query 1, and this is 2"):
        folder.put("2", 3, array([b"y"]))
    folder.remove(2)
    with pytest.raises(UsageError, match=r"batch 0 of a query cannot follow in .*has 2 to 2"):
        folder.put("2", 0, array([b"y"]))
    with pytest.raises(UsageError, match=r"batch 4 of a query cannot follow in .*has 2 to 2"):
        folder.put(QUERY, 4, array([b"y"]))
    assert folder.extent() == (3, False, 2)


def test_a_checkpoint_whose_folder_was_emptied_is_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"batch 7 of a query cannot follow in .*has none"):
        LandedFolder(tmp_path).put(QUERY, 7, array([b"x"]))
    assert not list(tmp_path.iterdir())


def test_a_stream_ends_once_and_takes_no_more(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    folder.put(QUERY, 0, array([b"x"]))
    assert not folder.extent().ended
    folder.end()
    folder.end()
    assert folder.extent() == (1, True, 0)
    folder.put(QUERY, 0, array([b"x"]))
    for number in (1, 2):
        with pytest.raises(UsageError, match=f"ended before batch {number}"):
            folder.put(QUERY, number, array([b"y"]))
    folder.remove(1)
    assert folder.extent() == (1, True, 1)


def test_a_stream_that_never_had_a_message_can_end(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    assert folder.extent() == (0, False, 0)
    folder.end()
    assert folder.extent() == (0, True, 0)
    with pytest.raises(UsageError, match="ended before batch 0"):
        folder.put(QUERY, 0, array([b"y"]))


def test_messages_that_are_gone_are_missed(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    for number in range(4):
        folder.put(QUERY, number, array([b"%d" % number]))
    (tmp_path / "batch-000000000001.landed").unlink()
    assert folder.extent() == (4, False, 2)
    with pytest.raises(MissingError, match="has no message 1"):
        folder.read(1, 4)
    with pytest.raises(MissingError, match="has no message 4"):
        folder.read(2, 5)


def test_damage_is_named(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    folder.put(QUERY, 0, array([b"abc", b"def"]))
    file = tmp_path / "batch-000000000000.landed"
    content = file.read_bytes()
    for at in range(len(content)):
        for damaged in (content[:at], content[:at] + b"\x5a" + content[at + 1 :]):
            if damaged == content:
                continue
            file.write_bytes(damaged)
            with pytest.raises(DamageError, match="batch-000000000000"):
                folder.read(0, 2)


def test_an_application_reads_what_was_landed_and_lets_go_of_it(tmp_path: Path) -> None:
    lines = [b"they know number %d" % (n % 5) for n in range(60)]
    folder = LandedFolder(tmp_path / "landed")
    out = FolderSink(tmp_path / "out")
    config = RunConfig(
        tmp_path / "checkpoint",
        {"lines": LandedSource(tmp_path / "landed")},
        {"totals": out},
        batch_messages=7,
    )
    for number in range(6):
        folder.put(QUERY, number, array(lines[10 * number : 10 * number + 10]))
    folder.end()
    run_in_process(word_count.app, config)
    outputs = interpret(word_count.app, {"lines": lines}).outputs
    assert sorted(out.rows()) == sorted([(o.id, o.key, o.data.decode()) for o in outputs])
    assert len(list((tmp_path / "landed").iterdir())) == 1
    anew = dataclasses.replace(
        config, checkpoint=tmp_path / "other", sinks={"totals": FolderSink(tmp_path / "again")}
    )
    with pytest.raises(MissingError, match="lines/0 to lines/59 are missing"):
        run_in_process(word_count.app, anew)


def test_a_range_is_read_as_planned(tmp_path: Path) -> None:
    folder = LandedFolder(tmp_path)
    folder.put(QUERY, 0, array([b"a\n", b"", b"\xff\r"]))
    source = LandedSource(tmp_path)
    assert source.extent(3, 0.0) == (3, False, 0)
    assert list(source.read(MessageRange("lines", 1, 3), "", ())) == [
        pa.scalar(b"", pa.binary()),
        pa.scalar(b"\xff\r", pa.binary()),
    ]
