"""Lines of files and folders keep their numbers, whatever is added and whoever reads them."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.sources import lines as line_indexes
from bettong.engine.sources.base import Extent, FileSource, StreamSource
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.generator import GeneratorSource
from bettong.engine.sources.lines import ChangedFileError, LineIndex
from bettong.engine.storage.sealed import sealed
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange


def read(source: StreamSource, start: int, stop: int) -> list[bytes]:
    return list(source.read(MessageRange("lines", start, stop), "", ()))  # type: ignore[arg-type]


def restart() -> None:
    """Forget what this process has seen, as another one would not know it."""
    line_indexes._indexes.clear()


texts = st.lists(st.binary(max_size=5).filter(lambda b: not set(b) & set(b"\r\n")), max_size=8)


@given(texts, st.booleans(), st.data())
def test_any_range_of_lines(texts: list[bytes], closed: bool, data: st.DataObject) -> None:
    content = b"\n".join(texts) + (b"\n" if closed and texts else b"")
    expected = content.split(b"\n")
    expected = expected[:-1] if expected[-1] == b"" else expected
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        index = LineIndex(Path(file.name))
        index.refresh()
        assert index.lines == len(expected)
        start = data.draw(st.integers(0, len(expected)))
        stop = data.draw(st.integers(start, len(expected)))
        assert index.read(start, stop) == expected[start:stop]


def test_a_growing_file_ends_with_its_end_signal(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthr")
    source = FileSource(path, follow=True, end=b"end")
    assert source.extent(3, 0) == Extent(2, False)
    with path.open("ab") as file:
        file.write(b"ee\r\nend\n")
    assert source.extent(9, 5) == Extent(4, True)
    assert read(source, 1, 4) == [b"two", b"three", b"end"]
    restart()
    assert read(source, 2, 3) == [b"three"]


def test_a_file_that_has_become_shorter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    assert FileSource(path).extent(0, 0) == Extent(2, True)
    with path.open("r+b") as file:
        file.truncate(3)
    with pytest.raises(ChangedFileError, match="lines had 8 bytes and has 3"):
        FileSource(path).extent(0, 0)


def test_a_file_in_the_place_of_another_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    source = FileSource(path, follow=True)
    assert source.extent(2, 0).end == 2
    path.rename(tmp_path / "lines.1")
    path.write_bytes(b"ONE\nTWO\nTHREE\n")
    with pytest.raises(ChangedFileError, match="another file is in the place of source file"):
        source.extent(3, 0)
    path.write_bytes(b"one\ntwo\nthree\n")  # a copy of it, with more
    assert source.extent(3, 0).end == 3
    assert read(source, 1, 3) == [b"two", b"three"]
    path.write_bytes(b"three\n")
    line_indexes.number_anew()  # another run
    assert read(source, 0, 1) == [b"three"]


def test_lines_that_have_moved_are_named(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    source = FileSource(path)
    assert source.extent(2, 0).end == 2
    with path.open("r+b") as file:
        file.write(b"o\ne\ntwo\n")
    with pytest.raises(ChangedFileError, match="other lines than when they were numbered"):
        read(source, 0, 1)


class _Watched:
    """An open file; while it is read first, something else is done."""

    def __init__(self, file: BinaryIO, meanwhile: Callable[[], None]) -> None:
        self._file = file
        self._meanwhile = meanwhile

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int) -> bytes:
        self._meanwhile()
        return self._file.read(size)


def test_two_threads_that_look_at_a_file_number_each_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    index = LineIndex(path)
    other = threading.Thread(target=index.refresh)
    open_path = Path.open

    def look_too() -> None:
        if threading.current_thread() is not other and other.ident is None:
            other.start()
            other.join(0.2)  # it ends only where nothing keeps it from looking now

    monkeypatch.setattr(Path, "open", lambda p, mode: _Watched(open_path(p, mode), look_too))
    index.refresh()
    other.join()
    assert (index.lines, index.size) == (2, 8)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none cannot be read: No such file"):
        FileSource(tmp_path / "none").extent(0, 0)


@pytest.fixture
def folder(tmp_path: Path) -> DirectorySource:
    (tmp_path / "in").mkdir()
    return DirectorySource(tmp_path / "in", tmp_path / "index", end="end")


def put(source: DirectorySource, name: str, *lines: str) -> None:
    (source.directory / name).write_text("".join(f"{line}\n" for line in lines))


def test_files_keep_their_numbers_when_others_come_before_them(folder: DirectorySource) -> None:
    put(folder, "b", "b0", "b1")
    put(folder, "c")
    put(folder, "d", "d0")
    put(folder, "_hidden", "no")
    assert folder.extent(9, 0) == Extent(3, False)
    put(folder, "a", "a0", "a1")
    restart()
    assert folder.extent(9, 0) == Extent(5, False)
    assert read(folder, 1, 4) == [b"b1", b"d0", b"a0"]
    assert folder.locate(1) == ("b", 3)
    assert folder.locate(2) == ("d", 0)
    put(folder, "end", "over")
    put(folder, "f", "never")
    assert folder.extent(9, 5) == Extent(7, True)  # f was there when end was taken
    put(folder, "g", "never")
    assert folder.extent(9, 0) == Extent(7, True)
    assert read(folder, 5, 7) == [b"never", b"over"]
    with pytest.raises(UsageError, match="no message 7"):
        folder.locate(7)


def test_a_file_that_changes_after_it_was_taken_is_named(folder: DirectorySource) -> None:
    put(folder, "a", "a0")
    folder.extent(1, 0)
    put(folder, "a", "a0", "more")
    with pytest.raises(ChangedFileError, match="a had 3 bytes when its messages were numbered"):
        read(folder, 0, 1)


def test_two_drivers_take_the_same_files(folder: DirectorySource) -> None:
    put(folder, "a", "a0")
    folder.extent(1, 0)
    entry = folder.index / "000000001.json"
    put(folder, "b", "b0")
    put(folder, "c", "c0")
    entry.write_bytes(sealed(["c", 3, 1, 1]))  # another driver was quicker
    assert folder.extent(9, 0).end == 3
    assert read(folder, 0, 3) == [b"a0", b"c0", b"b0"]


def test_a_generator_gives_the_same_whenever_asked() -> None:
    source = GeneratorSource(lambda n: b"%d" % (n * n), count=10)
    assert source.extent(3, 0) == Extent(10, True)
    assert read(source, 2, 5) == [b"4", b"9", b"16"]
    endless = GeneratorSource(bytes)
    assert not endless.extent(10**9, 0).ended
    assert endless.extent(10**9, 0).end > 10**9
