"""One model of what a crash takes away: the simulated disk and the real one under watch leave the
same files behind."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import steps
from bettong.engine.storage.disk import OS_DISK, AppendFile, Disk
from bettong.engine.storage.disk_log import account, lose, replayed
from bettong.engine.storage.durability import KEEPS, Image, Keep
from bettong.engine.storage.simulated import SimulatedDisk

NAMES = st.sampled_from(["a", "b", "c"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), NAMES, st.binary(min_size=1, max_size=5)),
        st.tuples(st.just("truncate"), NAMES, st.integers(0, 6)),
        st.tuples(st.sampled_from(["sync", "remove"]), NAMES, st.none()),
        st.tuples(st.sampled_from(["rename", "link"]), NAMES, NAMES),
        st.tuples(st.just("sync directory"), st.none(), st.none()),
    ),
    max_size=25,
)


class Program:
    """Does the same to any disk."""

    def __init__(self, disk: Disk, home: Path) -> None:
        self.disk, self.home = disk, home
        self.files: dict[str, AppendFile] = {}

    def do(self, operation: str, name: str, operand: object) -> None:
        path = self.home / str(name)
        if operation == "sync directory":
            self.disk.sync_directory(self.home)
        elif operation in ("append", "truncate", "sync"):
            if name not in self.files:
                self.files[name] = self.disk.append_to(path)
            wanted: dict[str, Callable[[], None]] = {
                "append": lambda: self.files[name].write(operand),  # type: ignore[arg-type]
                "truncate": lambda: self.files[name].truncate(operand),  # type: ignore[arg-type]
                "sync": lambda: self.files[name].sync(),
            }
            wanted[operation]()
        elif name in self.disk.names(self.home):
            if operation == "remove":
                self.disk.remove(path)
                self.files.pop(name, None)
            elif operation == "rename" and name != operand:
                self.disk.rename(path, self.home / str(operand))
                self.files.pop(str(operand), None)
                if name in self.files:
                    self.files[str(operand)] = self.files.pop(name)
            elif operation == "link" and operand not in self.disk.names(self.home):
                self.disk.link(path, self.home / str(operand))


@contextmanager
def watched(folder: Path) -> Iterator[Path]:
    """A folder whose files are watched, beside the account."""
    home = folder / "home"
    home.mkdir()
    before = steps.installed()
    reported = steps.Instrumentation(node="n", trace=str(folder / "trace"), disk=str(folder))
    steps.install(reported)
    try:
        yield home
    finally:
        steps.install(before)


def image(home: Path) -> Image:
    return {Path(p.name): p.read_bytes() for p in home.iterdir()}


def relative(found: Image) -> Image:
    return {Path(path.name): content for path, content in found.items()}


@given(
    OPERATIONS,
    st.one_of(st.sampled_from(KEEPS), st.integers(0, 8)),
    st.dictionaries(NAMES, st.binary(max_size=4)),
)
def test_both_disks_leave_the_same_files_behind(
    operations: list[tuple[str, str, object]], keep: Keep, before: dict[str, bytes]
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with watched(folder) as home:
            for name, content in before.items():
                (home / name).write_bytes(content)
            simulated = SimulatedDisk({home / n: content for n, content in before.items()})
            for disk in (OS_DISK, simulated):
                program = Program(disk, home)
                for operation in operations:
                    program.do(*operation)
            file = account(folder, "n")
            known = replayed(file)
            assert known.image().items() <= simulated.image().items()
            survivors = relative(simulated.volume.survivors(keep))
            assert image(home) == relative(simulated.image())
            assert survivors in [relative(each) for each in simulated.images()]
            lose(file, keep)
            assert image(home) == survivors
            assert not replayed(file).changes, "what is left is durable"
    finally:
        shutil.rmtree(folder)


@given(OPERATIONS)
def test_choices_differ_and_lose_something(operations: list[tuple[str, str, object]]) -> None:
    disk = SimulatedDisk()
    program = Program(disk, Path("/home"))
    for operation in operations:
        program.do(*operation)
    images = [disk.volume.survivors(keep) for keep in disk.volume.choices()]
    assert disk.image() not in images
    assert all(image not in images[:n] for n, image in enumerate(images))
    if images:
        assert all(disk.volume.lost(keep) for keep in disk.volume.choices())


def test_nothing_is_lost_when_names_and_bytes_are_synced(tmp_path: Path) -> None:
    with watched(tmp_path) as home:
        file = OS_DISK.append_to(home / "a")
        file.write(b"12")
        file.sync()
        OS_DISK.sync_directory(home)
        file.close()
        assert lose(account(tmp_path, "n")) == []
    assert image(home) == {Path("a"): b"12"}


def test_what_was_killed_before_it_was_synced_is_still_not_durable(tmp_path: Path) -> None:
    with watched(tmp_path) as home:
        OS_DISK.sync_directory(home)
        child = os.fork()
        if not child:
            file = OS_DISK.append_to(home / "a")
            file.write(b"12")
            os._exit(0)
        os.waitpid(child, 0)
        assert lose(account(tmp_path, "n")) == ["name a", "2 bytes of a"]
    assert image(home) == {}


def test_a_folder_that_was_not_made_durable_is_lost_with_all_in_it(tmp_path: Path) -> None:
    class Careless(type(OS_DISK)):  # type: ignore[misc]
        def sync_directory(self, path: Path) -> None:
            if path.name != "home":
                super().sync_directory(path)

    with watched(tmp_path) as home:
        disk: Disk = Careless()
        disk.make_directory(home / "folder")
        file = disk.append_to(home / "folder" / "a")
        file.write(b"12")
        file.sync()
        disk.sync_directory(home / "folder")
        assert lose(account(tmp_path, "n")) == ["name folder"]
    assert list(home.iterdir()) == []


def test_a_folder_whose_maker_has_failed_is_made_durable_by_the_next_one(tmp_path: Path) -> None:
    class FailsOnce(type(OS_DISK)):  # type: ignore[misc]
        def sync_directory(self, path: Path) -> None:
            if path.name == "home" and not failed:
                failed.append(path)
                raise OSError(errno.EIO, "the disk has failed")
            super().sync_directory(path)

    failed: list[Path] = []
    with watched(tmp_path) as home:
        disk: Disk = FailsOnce()
        with pytest.raises(OSError, match="the disk has failed"):
            disk.make_directory(home / "folder")
        disk.make_directory(home / "folder")
        file = disk.append_to(home / "folder" / "a")
        file.write(b"12")
        file.sync()
        disk.sync_directory(home / "folder")
        assert lose(account(tmp_path, "n")) == []
    assert failed == [home]
    assert (home / "folder" / "a").read_bytes() == b"12"


@pytest.mark.parametrize(("keep", "left"), [("names", {"b": b""}), ("content", {"a": b"12"})])
def test_a_rename_may_overtake_its_data(tmp_path: Path, keep: Keep, left: dict[str, bytes]) -> None:
    with watched(tmp_path) as home:
        file = OS_DISK.append_to(home / "a")
        OS_DISK.sync_directory(home)
        file.write(b"12")
        OS_DISK.rename(home / "a", home / "b")
        lose(account(tmp_path, "n"), keep)
    assert image(home) == {Path(name): content for name, content in left.items()}
