"""A batch of the sink that renames is there as a whole, once, whoever comes late with it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.datasource import DataSourceStreamWriter

from bettong.scenarios.sinks.writers import DataSourceRename, _Staged


def test_a_driver_that_comes_late_changes_nothing_of_its_successors_batch(tmp_path: Path) -> None:
    commit(tmp_path, {"0": "ab", "1": "c"})
    commit(tmp_path, {"0": "a", "1": "bc"})  # dealt out in another way
    assert rows(tmp_path) == {"0": "ab", "1": "c"}


def test_one_that_dies_before_the_batch_is_visible_leaves_nothing_visible(tmp_path: Path) -> None:
    staged(tmp_path, {"0": "ab"})
    (tmp_path / ".1-begun").mkdir()
    assert rows(tmp_path) == {}
    commit(tmp_path, {"0": "ab"})
    assert rows(tmp_path) == {"0": "ab"}


def commit(folder: Path, partitions: dict[str, str]) -> None:
    writer(folder).commit([*staged(folder, partitions)], 1)


def writer(folder: Path) -> DataSourceStreamWriter:
    source = DataSourceRename.source({"folder": str(folder)})
    return source.streamWriter(None, False)  # type: ignore[arg-type]


def staged(folder: Path, partitions: dict[str, str]) -> list[_Staged]:
    found = []
    for name, text in partitions.items():
        aside = folder / f".{name}-{len(list(folder.iterdir()))}"
        aside.write_text(text)
        found.append(_Staged(str(aside), name))
    return found


def rows(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in folder.glob("[!.]*/*.jsonl")}
