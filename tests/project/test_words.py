"""One standard term for each thing: the words that were used before stay away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("benchmarks", "docs", "engine", "harness", "lineage", "reports", "scenarios", "tests")
KINDS = {".css", ".html", ".java", ".js", ".md", ".py", ".toml", ".yaml"}

NO_NAMES = {
    "arena", "befall", "befalls", "befell", "bury", "door", "doors", "foldings", "haunted",
    "risen", "runbook", "said", "situation", "situations", "spare", "strike", "strikes",
    "struck", "tells", "threat", "threats", "told", "twin", "twins", "untold", "weaver", "zygote",
}  # fmt: skip
"""No part of a name in code."""

NO_TEXT = NO_NAMES - {"said", "spare", "told", "tells", "untold"}
"""Nor a word of a text: those left out are plain English there."""

ALLOWED = {
    "engine/metrics/config.py": {"door"},  # the former name of a field, which works still
    "engine/net/doors.py": {"doors"},  # the former name of a module, which works still
    "harness/catalog.py": {"twins"},  # former names of what is in the catalog
    "tests/engine/metrics/test_metrics.py": {"door"},
    "tests/engine/net/test_access.py": {"doors"},
    "tests/harness/test_catalog.py": {"twins"},
}


def _names(text: str) -> Iterator[str]:
    """The names in a module; those of tests are sentences."""
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str) and not name.startswith("test_"):
                yield name


def _parts(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def _files() -> list[str]:
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in KINDS]
    return [str(path.relative_to(ROOT)) for path in (*found, *ROOT.glob("*.md"))]


def old_words(name: str, text: str) -> set[str]:
    """The words in a file that should not be there."""
    found = NO_TEXT & set(re.findall(r"[a-z]+", text.lower()))
    if name.endswith(".py") and any(word in text.lower() for word in NO_NAMES):
        for identifier in _names(text):
            found |= NO_NAMES & _parts(identifier)
    return found - ALLOWED.get(name, set())


def test_a_former_word_is_found_in_names_and_texts() -> None:
    assert old_words("a.py", "arena_for = 1\ndef f(told): 'it told nobody'\n") == {"arena", "told"}
    assert old_words("a.py", "class BrokenTwin: pass\n") == {"twin"}
    assert old_words("a.md", "What befalls a door, we told you.") == {"befalls", "door"}
    assert old_words("a.py", "def test_what_is_told(): 'foretold'\n") == set()


def test_the_former_words_stay_away() -> None:
    history = ("CHANGELOG.md", "tests/project/test_words.py")
    read = [name for name in _files() if name not in history]
    assert len(read) > 500
    found = {name: words for name in read if (words := old_words(name, (ROOT / name).read_text()))}
    assert not found


def test_the_exceptions_are_needed() -> None:
    for name, allowed in ALLOWED.items():
        text = (ROOT / name).read_text().lower()
        assert all(re.search(rf"\b{word}\b", text) for word in allowed), name
