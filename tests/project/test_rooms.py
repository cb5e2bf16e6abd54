"""Imports between rooms go one way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FRONT = {"bettong.harness", "bettong.engine", "bettong.lineage", "bettong.reports"}
ALLOWED = {
    "lineage": {"bettong.lineage"},
    "engine": {
        "bettong.engine",
        "bettong.lineage.errors",
        "bettong.lineage.user_code",
        "bettong.lineage.trace",
    },
    "reports": {
        "bettong.reports",
        "bettong.lineage.errors",
        "bettong.lineage.user_code",
        "bettong.lineage.graph",
        "bettong.lineage.results",
        "bettong.lineage.trace",
    },
    "harness": {"bettong.harness", "bettong.engine", "bettong.lineage"},
    "harness/cli/": FRONT,
    "harness/pytest_plugin/": FRONT,
    "harness/testing.py": FRONT,
}


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in ("bettong", "bettong.lineage"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def _room(file: Path) -> str:
    path = file.relative_to(ROOT).as_posix()
    return max((room for room in ALLOWED if path.startswith(room)), key=len)


@pytest.mark.parametrize("top", ["lineage", "engine", "reports", "harness"])
def test_a_room_imports_only_what_it_may(top: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted((ROOT / top).rglob("*.py"))
        for name in _imports(file)
        if name.startswith("bettong")
        and not any(name == ok or name.startswith(ok + ".") for ok in ALLOWED[_room(file)])
    ]
    assert not wrong


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    rooms = {"engine", "harness", "lineage", "reports", "scenarios"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for room in sorted(rooms)
        for file in sorted((ROOT / room).rglob("*.py"))
        for name in _imports(file)
        if name.split(".")[0] in rooms
    ]
    assert not wrong
