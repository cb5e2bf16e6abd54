"""The receiver's state: what it refuses, and that no crash loses or doubles a commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver.ledger import Ledger, Part
from bettong.engine.storage.log import DamageError
from bettong.engine.storage.simulated import Image, SimulatedDisk

HOME = Path("/out/app")
OUTPUT = HOME / "output.jsonl"
Action = Callable[[Ledger], object]


def opened(disk: SimulatedDisk, segment_bytes: int = 400) -> Ledger:
    return Ledger(HOME, "app", segment_bytes=segment_bytes, disk=disk)


def rows(text: str) -> bytes:
    return f'{{"id":"{text}"}}\n'.encode()


def visible(disk: SimulatedDisk) -> list[str]:
    return [json.loads(line)["id"] for line in disk.image()[OUTPUT].splitlines()]


def prepared(epoch: int, batch: int, partition: int, attempt: int, text: str) -> Action:
    return lambda ledger: ledger.prepare(epoch, batch, partition, attempt, 0, True, rows(text))


def committed(epoch: int, batch: int, winners: Mapping[int, int]) -> Action:
    return lambda ledger: ledger.commit(epoch, batch, winners)


def began(epoch: int) -> Action:
    return lambda ledger: ledger.open(epoch)


#: A run with losing attempts, a replay in a new epoch and several segments.
WORK: list[Action] = [
    began(1),
    prepared(1, 0, 1, 0, "0.1"),
    prepared(1, 0, 0, 0, "0.0 loser"),
    prepared(1, 0, 0, 1, "0.0"),
    committed(1, 0, {0: 1, 1: 0}),
    prepared(1, 1, 0, 0, "1.0 zombie"),
    began(2),
    prepared(2, 1, 0, 0, "1.0"),
    committed(2, 1, {0: 0}),
    prepared(2, 3, 0, 0, "3.0"),
    prepared(2, 3, 1, 0, "3.1"),
    committed(2, 3, {0: 0, 1: 0}),
    committed(2, 4, {}),
]
EXPECTED = ["0.0", "0.1", "1.0", "3.0", "3.1"]
REPLAYS_FROM = (0, 1, 5, 6, 7, 9, 12)


def test_winners_become_visible_in_the_order_of_partitions() -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    assert [action(ledger) for action in WORK] == [None, *[False] * 5, None, *[False] * 6]
    assert visible(disk) == EXPECTED


@given(st.lists(st.integers(0, len(WORK) - 1), max_size=6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_repeating_what_is_allowed_changes_nothing(places: list[int], restart: bool) -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    for place, action in enumerate(WORK):
        action(ledger)
        if restart:
            ledger = opened(disk)
        for earlier in places:
            if earlier <= place:
                try:
                    WORK[earlier](ledger)
                except RefusedError as e:
                    assert e.code == "fenced"
    assert visible(disk) == EXPECTED


def test_a_batch_is_committed_once_whoever_wins_the_replay() -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    for action in WORK[:5]:
        action(ledger)
    assert ledger.prepare(1, 0, 0, 7, 0, True, rows("again")), "already committed"
    assert ledger.commit(1, 0, {0: 7})
    assert visible(disk) == EXPECTED[:2]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (began(1), "fenced"),
        (prepared(1, 5, 0, 0, "x"), "fenced"),
        (committed(1, 1, {0: 0}), "fenced"),
        (prepared(3, 5, 0, 0, "x"), "epoch"),
        (committed(2, 5, {0: 0}), "unprepared"),
        (committed(2, 2, {}), "order"),
        (lambda ledger: ledger.prepare(2, 9, 0, 0, 1, True, b""), "gap"),
    ],
)
def test_what_must_not_be_is_refused(action: Action, code: str) -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    for each in WORK:
        each(ledger)
    before = disk.image()
    for again in (ledger, opened(SimulatedDisk(before))):
        with pytest.raises(RefusedError) as refusal:
            action(again)
        assert refusal.value.code == code
    assert disk.image() == before


def test_an_attempt_cannot_change_its_rows() -> None:
    ledger = opened(SimulatedDisk())
    ledger.open(1)
    assert not ledger.prepare(1, 0, 0, 0, 0, True, b"a\n")
    assert not ledger.prepare(1, 0, 0, 0, 0, True, b"a\n")
    with pytest.raises(RefusedError, match="with other rows before"):
        ledger.prepare(1, 0, 0, 0, 0, True, b"b\n")


def test_rows_in_parts_win_only_when_all_parts_are_there() -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    ledger.open(1)
    ledger.prepare(1, 0, 0, 0, 0, False, rows("a"))
    with pytest.raises(RefusedError, match="has not been prepared"):
        ledger.commit(1, 0, {0: 0})
    ledger = opened(disk)
    ledger.prepare(1, 0, 0, 0, 0, False, rows("a"))
    ledger.prepare(1, 0, 0, 0, 1, True, rows("b"))
    ledger.commit(1, 0, {0: 0})
    assert visible(disk) == ["a", "b"]


def worst(of: type[Ledger] = Ledger) -> int:
    """Run WORK; at each change of the disk, for each state that a crash could leave: recover,
    replay the batch, finish, and compare. Returns how many states were tried."""
    tried: set[tuple[int, frozenset[tuple[Path, bytes]]]] = set()
    place = 0

    def check() -> None:
        for image in disk.images():
            read = frozenset((p, c) for p, c in image.items() if "output.length" not in p.name)
            if (place, read) in tried:
                continue  # what tells readers the length is made anew
            tried.add((place, read))
            again = SimulatedDisk(image)
            ledger = of(HOME, "app", segment_bytes=400, disk=again)
            found = visible(again)
            assert found == EXPECTED[: len(found)]
            assert len(found) in (0, 2, 3, 5), "whole batches"
            assert len(found) >= [0, 0, 0, 0, 0, 2, 2, 2, 2, 3, 3, 3, 5, 5][place], "all promised"
            for action in WORK[max(n for n in REPLAYS_FROM if n <= place) :]:
                action(ledger)
            assert visible(again) == EXPECTED

    disk = SimulatedDisk()
    ledger = of(HOME, "app", segment_bytes=400, disk=disk)
    disk._on_change = check
    for place, action in enumerate(WORK):  # noqa: B007 (check reads it)
        action(ledger)
    return len(tried)


def test_no_crash_loses_or_doubles_a_commit() -> None:
    assert worst() > 1000


class CommitsAgain(Ledger):
    def is_committed(self, batch: int) -> bool:
        return False


class CommitsLosers(Ledger):
    def choose(self, batch: int, winners: Mapping[int, int]) -> list[Part]:
        return [part for staged in self.staged.get(batch, {}).values() for part in staged.parts]


class ForgetsAtRestart(Ledger):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.committed = type(self.committed)()


class FencesNobody(Ledger):
    def check_epoch(self, epoch: int) -> None:
        pass


@pytest.mark.parametrize("broken", [CommitsAgain, CommitsLosers, ForgetsAtRestart])
def test_broken_ledgers_are_found_out(broken: type[Ledger]) -> None:
    with pytest.raises(AssertionError):
        worst(broken)


def test_a_ledger_without_a_fence_lets_a_zombie_in() -> None:
    disk = SimulatedDisk()
    ledger = FencesNobody(HOME, "app", disk=disk)
    ledger.open(1)
    ledger.open(2)
    ledger.prepare(1, 0, 0, 0, 0, True, rows("zombie"))
    ledger.commit(1, 0, {0: 0})
    assert visible(disk) == ["zombie"]


def finished() -> Image:
    disk = SimulatedDisk()
    ledger = opened(disk)
    for action in WORK:
        action(ledger)
    return disk.image()


def test_damage_at_any_byte_is_found() -> None:
    image = finished()
    for path, content in image.items():
        if path.name.startswith("output.length"):
            continue  # made anew from the log
        for place in range(len(content)):
            damaged = bytearray(content)
            damaged[place] ^= 0x10
            disk = SimulatedDisk(image | {path: bytes(damaged)})
            try:
                opened(disk)
            except DamageError:
                continue
            assert path == OUTPUT, "the last commit's rows are written again"
            assert visible(disk) == EXPECTED


def test_rows_that_nobody_committed_are_found() -> None:
    image = finished()
    with pytest.raises(DamageError, match="nobody committed"):
        opened(SimulatedDisk(image | {OUTPUT: image[OUTPUT] + b"{}\n"}))
    with pytest.raises(DamageError, match="were committed"):
        opened(SimulatedDisk(image | {OUTPUT: b""}))


def test_old_segments_go_and_the_log_stays_small() -> None:
    disk = SimulatedDisk()
    ledger = opened(disk)
    ledger.open(1)
    for batch in range(50):
        ledger.prepare(1, batch, 0, 0, 0, True, rows(f"{batch}" * 10))
        ledger.commit(1, batch, {0: 0})
    log = [content for path, content in disk.image().items() if path.parent.name == "log"]
    assert len(log) == 1
    assert sum(map(len, log)) < 1500
    again = opened(disk)
    assert again.commit(1, 7, {0: 0}), "still known"
    assert len(visible(disk)) == 50


class FailsOnce:
    """The n-th operation of a disk is done, but said to have failed."""

    def __init__(self, disk: SimulatedDisk, n: int) -> None:
        self.left = n
        disk._on_change = self

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(5, "Input/output error")


def test_no_failure_of_the_disk_loses_or_doubles_a_commit() -> None:
    for n in range(1, 1000):
        disk = SimulatedDisk()
        ledger = opened(disk)
        fails = FailsOnce(disk, n)
        for action in WORK:
            try:
                action(ledger)
            except OSError:
                try:
                    action(ledger)  # asked again
                except OSError as e:
                    assert "closed" in str(e)
                    ledger = opened(disk)  # started again
                    action(ledger)
        assert visible(disk) == EXPECTED
        reported = disk.image()[HOME / "output.length"]
        assert int(reported) == len(disk.image()[OUTPUT]), "readers know"
        assert opened(SimulatedDisk(disk.image())).committed.ranges == [[0, 1], [3, 4]]
        if fails.left > 0:
            break
    assert n > 50
