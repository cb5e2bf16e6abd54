"""Folders compare by what is in them, wherever they are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.runs.folder_content import FolderContent

NAMES = st.sampled_from(["a", "b", "ab", "sub/a", "sub/b"])
FILES = st.dictionaries(NAMES, st.binary(max_size=3), max_size=4)


def laid(top: Path, files: dict[str, bytes]) -> FolderContent:
    folder = top / "log"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return FolderContent.of(folder)


@given(FILES, FILES)
def test_folders_are_equal_when_their_files_are(
    one: dict[str, bytes], two: dict[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as top:
        first, second = laid(Path(top) / "1", one), laid(Path(top) / "2", two)
        assert (first == second) is (one == two)
        assert hash(first) == hash(second) or one != two


def test_a_folder_that_is_empty_is_not_one_that_is_not_there(tmp_path: Path) -> None:
    bare = laid(tmp_path / "1", {})
    (tmp_path / "2" / "log" / "sub").mkdir(parents=True)
    assert bare != FolderContent.of(tmp_path / "2" / "log")


def test_a_folder_of_another_name_is_another_one(tmp_path: Path) -> None:
    first = laid(tmp_path, {"a": b"1"})
    assert first != FolderContent.of((tmp_path / "log").rename(tmp_path / "other"))


def test_what_is_done_to_a_copy_is_not_done_to_the_folder(tmp_path: Path) -> None:
    content = laid(tmp_path, {"a": b"1", "sub/b": b"2"})
    with content.copied() as copy:
        assert (copy.name, FolderContent.of(copy)) == ("log", content)
        (copy / "a").write_bytes(b"3")
    assert FolderContent.of(content.path) == content
    assert not copy.exists()
