"""What is in the checkout is what is packaged."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine", "harness", "lineage", "reports", "scenarios")


def test_every_subpackage_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(("bettong", *init.parent.relative_to(ROOT).parts))
        for room in ROOMS
        for init in (ROOT / room).rglob("__init__.py")
    }
    assert listed == found


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_that_it_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").exists()
