"""What runs have left on disks: when it is the same."""

from __future__ import annotations

import zlib
from pathlib import Path

from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.remains import remains


def left(folder: Path, token: str, *, state: bytes = b"5", note: str = "", log: str = "") -> bytes:
    (folder / "checkpoint").mkdir(parents=True)
    name = f"000001-0-{token}.arrow"
    (folder / "checkpoint" / name).write_bytes(state)
    line = f"{name} is the state{note}".encode()
    checked = b"%s\n%08x\n" % (line, zlib.crc32(line))
    (folder / "checkpoint" / "manifest.json").write_bytes(checked)
    (folder / "driver.log").write_text(log)
    layout = Layout(folder)
    layout.accounts.mkdir()
    (layout.accounts / "driver.disk").write_text(token)
    return remains(layout)


def test_parts_of_names_that_are_chance_logs_and_accounts_make_no_difference(
    tmp_path: Path,
) -> None:
    first = left(tmp_path / "a", "0123456789ab")
    assert left(tmp_path / "b", "ba9876543210", log="it went on") == first


def test_names_of_files_that_were_not_finished_make_no_difference(tmp_path: Path) -> None:
    found = set()
    for begun in ("0123456789abcdef", "fedcba9876543210"):
        manifests = tmp_path / begun / "checkpoint" / "manifests"
        manifests.mkdir(parents=True)
        (manifests / f".tmp-{begun * 2}").write_bytes(b"half a manif")
        found.add(remains(Layout(tmp_path / begun)))
    assert len(found) == 1


def test_contents_names_and_damage_make_one(tmp_path: Path) -> None:
    token = "0123456789ab"
    all_of_them = {
        left(tmp_path / "a", token),
        left(tmp_path / "b", token, state=b"6"),
        left(tmp_path / "c", token, note="!"),
    }
    left(tmp_path / "d", token)
    manifest = tmp_path / "d" / "checkpoint" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-2] + b"x\n")
    all_of_them.add(remains(Layout(tmp_path / "d")))
    (tmp_path / "d" / "checkpoint" / "temporary").write_bytes(b"")
    all_of_them.add(remains(Layout(tmp_path / "d")))
    assert len(all_of_them) == 5


def noted(folder: Path, begun: str, end: int) -> bytes:
    """What Spark notes of one batch."""
    for log in ("offsets", "commits"):
        (folder / "checkpoint" / "spark" / log).mkdir(parents=True)
    offsets = folder / "checkpoint" / "spark" / "offsets"
    (offsets / "0").write_text(f'v1\n{{"batchTimestampMs":{begun}}}\n{{"end":{end}}}')
    (offsets / ".0.crc").write_text(begun[-4:])
    (folder / "checkpoint" / "spark" / "metadata").write_text(
        f'{{"id":"{begun[-8:]}-0000-4000-8000-000000000000"}}'
    )
    return remains(Layout(folder))


def test_when_spark_began_makes_no_difference(tmp_path: Path) -> None:
    first = noted(tmp_path / "a", "1763733208123", 5)
    assert noted(tmp_path / "b", "1763733299999", 5) == first
    assert noted(tmp_path / "c", "1763733208123", 6) != first


def test_the_id_in_the_name_of_an_unfinished_file_makes_no_difference(tmp_path: Path) -> None:
    def unfinished(folder: Path, *ids: str) -> bytes:
        noted(folder, "1763733208123", 5)
        for id in ids:
            name = f".1.{id}-0000-4000-8000-000000000000.tmp"
            (folder / "checkpoint" / "spark" / "offsets" / name).write_text("v1")
        return remains(Layout(folder))

    first = unfinished(tmp_path / "a", "00000001")
    assert unfinished(tmp_path / "b", "00000002") == first
    assert unfinished(tmp_path / "c") != first
    assert unfinished(tmp_path / "d", "00000001", "00000002") != first
