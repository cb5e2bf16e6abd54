"""Tests that the docs rest a claim on are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from docs_samples import PAGES, ROOT

_NAME = re.compile(r"`(?:(test_\w+\.py)(?:::)?)?(test_\w+|…\w+)?`")


def defined() -> dict[str, set[str]]:
    """The tests of each file."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        found.setdefault(path.name, set()).update(n for n in names if n.startswith("test_"))
    return found


def named() -> Iterator[tuple[str, str, str]]:
    """(page, file or nothing, test or nothing)."""
    for page, path in PAGES.items():
        for file, test in _NAME.findall(path.read_text("utf-8")):
            if file or test:
                yield page, file, test


def test_every_test_that_the_docs_name_is_there() -> None:
    files = defined()
    everywhere = set().union(*files.values())
    claims = list(named())
    assert len(claims) > 30, "the docs name their tests"
    for page, file, test in claims:
        assert not file or file in files, f"{page}: {file}"
        known = files[file] if file else everywhere
        if test.startswith("…"):
            assert any(t.endswith(test[1:]) for t in everywhere), f"{page}: {test}"
        elif test:
            assert test in known, f"{page}: {file} {test}"


def test_every_cell_of_the_table_of_features_names_a_test_or_says_why_not() -> None:
    text = (ROOT / "docs" / "engine.md").read_text("utf-8")
    table = text[text.index("## What holds where") :]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        for cell in cells[1:]:
            assert "`test_" in cell or cell in WITHOUT_TEST, f"{cells[0]}: {cell}"


WITHOUT_TEST = {
    "no workers",
    "not tried on Spark",
    "the same codecs",
    "the same log",
    "pushed by your program",
    "has one",
    "in a program of yours",
    "not there",
}
"""Cells that rest on another one, or of which there is nothing to show."""


def test_this_test_can_fail() -> None:
    claims = _NAME.findall("`test_nowhere`, `test_file_sink.py::test_nowhere`, `test_plain_tcp.py`")
    assert claims == [
        ("", "test_nowhere"),
        ("test_file_sink.py", "test_nowhere"),
        ("test_plain_tcp.py", ""),
    ]
    assert "test_nowhere" not in set().union(*defined().values())
