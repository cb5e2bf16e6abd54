"""What a node's account says that a power cut would take away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.engine.storage.disk_log import DiskLog, account, makes

FOLDER = Path("/disk")
FILE, OTHER = FOLDER / "a", FOLDER / "b"


def write(log: DiskLog) -> None:
    log.write("open", "1", FILE)
    log.write("append", "1", data=b"content")


def sync(log: DiskLog) -> None:
    log.write("sync", "1")
    log.write("sync directory", FOLDER)


def remove(log: DiskLog) -> None:
    log.write("remove", FILE)


def link(log: DiskLog) -> None:
    log.write("link", FILE, OTHER)


def cut(log: DiskLog) -> None:
    log.write("truncate", "1", 3)


@pytest.mark.parametrize(
    ("done", "made"),
    [
        ([], None),
        ([write], True),
        ([write, sync], None),
        ([write, sync, remove], False),
        ([write, sync, link], True),
        ([write, sync, link, remove], True),
        ([write, sync, cut], True),
    ],
)
def test_a_node_makes_what_it_writes_and_names_and_has_not_synced(
    tmp_path: Path, done: list[Callable[[DiskLog], None]], made: bool | None
) -> None:
    log = DiskLog(tmp_path, "node")
    for step in done:
        step(log)
    assert makes(account(tmp_path, "node")) is made
