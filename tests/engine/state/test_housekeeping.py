"""Cleaning up beside another driver that does the same: one has been replaced by the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from bettong.engine import state_entity
from bettong.engine.state.compaction import to_merge
from bettong.engine.state.entities import save
from bettong.engine.state.files import FileEntry
from bettong.engine.state.housekeeping import Housekeeper, file_name
from bettong.engine.state.inline import InlineExecutor
from bettong.engine.state.manifest import (
    Manifest,
    remove_manifest,
    stored,
    take_epoch,
    write_manifest,
)
from bettong.engine.state.store import LocalStore, StoreError
from bettong.scenarios.applications.word_count import WordTotal


@dataclass(frozen=True)
class Shared(LocalStore):
    """A store in which something happens right before the first manifest is read."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def read(self, name: str) -> memoryview:
        if name.startswith("manifests/") and self.meanwhile:
            self.meanwhile.pop()()
        return super().read(name)


def keep_house(store: LocalStore, epoch: int) -> None:
    manifest = Manifest("app", 2, epoch, {}, ())
    write_manifest(store, manifest)
    housekeeper = Housekeeper(store, (), 1, epoch, 9, 4, InlineExecutor())
    housekeeper.after(manifest)
    assert housekeeper.current(()) == ()


def written(folder: Path) -> Shared:
    store = Shared(folder)
    take_epoch(store, "first")
    for batch in range(2):
        write_manifest(store, Manifest("app", batch, 1, {}, ()))
    return store


def unreadable(folder: Path) -> None:
    """Also for root: a folder is in the first manifest's place."""
    manifest = folder / "manifests" / "000000000000-000001.json"
    manifest.unlink()
    manifest.mkdir()


def test_a_version_that_a_replaced_driver_is_still_removing_is_passed_over(tmp_path: Path) -> None:
    store = written(tmp_path)
    epoch = take_epoch(store, "second")
    store.meanwhile.append(lambda: remove_manifest(store, 0, 1))
    keep_house(store, epoch)
    assert stored(store) == [(1, 1), (2, epoch)]


def test_a_driver_that_is_being_replaced_leaves_the_log_to_its_successor(tmp_path: Path) -> None:
    store = written(tmp_path)
    unreadable(tmp_path)
    store.meanwhile.append(partial(take_epoch, store, "second"))
    keep_house(store, 1)


def test_a_version_that_is_there_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    store = written(tmp_path)
    unreadable(tmp_path)
    with pytest.raises(StoreError, match="cannot be read"):
        keep_house(store, 1)


@dataclass(frozen=True)
class Counted(LocalStore):
    """Notes which manifests are read."""

    reads: list[str] = field(default_factory=list)

    def read(self, name: str) -> memoryview:
        if name.startswith("manifests/"):
            self.reads.append(name)
        return super().read(name)


def test_a_version_of_another_driver_is_read_once_and_its_files_stay_while_it_is_kept(
    tmp_path: Path,
) -> None:
    store = Counted(tmp_path)
    state = state_entity(WordTotal)
    names = []

    def published(batch: int, epoch: int) -> Manifest:
        name = file_name(state.name, epoch, batch, "0000-0")
        names.append(name.rpartition("/")[2])
        entry = save(state, store, name, [b"sk"], [batch], [WordTotal(batch)])
        manifest = Manifest("app", batch, epoch, {}, (entry,))
        write_manifest(store, manifest)
        return manifest

    before = take_epoch(store, "before")
    for batch in range(3):
        published(batch, before)
    epoch = take_epoch(store, "now")
    housekeeper = Housekeeper(store, (state,), 1, epoch, 4, 9, InlineExecutor())
    kept = []
    for batch in range(3, 8):
        manifest = published(batch, epoch)
        housekeeper.after(manifest)
        assert housekeeper.current(manifest.files) == manifest.files
        kept.append(set(store.names(f"state/{state.name}")))
    assert kept == [set(names[batch - 3 : batch + 1]) for batch in range(3, 8)]
    assert sorted(store.reads) == [f"manifests/{b:012d}-{before:06d}.json" for b in range(3)]


def test_files_that_are_too_large_for_one_are_left_apart() -> None:
    """A run whose state has grown goes on: one array of a column cannot hold them."""

    def of(number: int, length: int, tier: int) -> FileEntry:
        return FileEntry(f"state/s/{number}", "s", 0, 9, 1, length, 0, tier)

    large = [of(n, 650 << 20, 1) for n in range(4)]
    small = [of(10 + n, 1000, 0) for n in range(4)]
    assert to_merge(large[:3], 0, 10, 3) == tuple(large[:3])
    assert to_merge(large, 0, 10, 3) == ()
    assert to_merge([*small, *large], 0, 10, 4) == tuple(small)


def test_a_file_with_the_first_hash_of_the_next_partition_is_not_merged() -> None:
    own = [FileEntry(f"state/s/{i}", "s", 0, 9, 1, 1, 0) for i in range(2)]
    beyond = [replace(entry, high=10) for entry in own]
    assert to_merge(own, 0, 10, 2) == tuple(own)
    assert to_merge(beyond, 0, 10, 2) == ()
