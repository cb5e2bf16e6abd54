"""One standard term for each thing: the words that were used before stay away."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("docs", "engine", "harness", "lineage", "reports", "scenarios", "tests")
KINDS = {".css", ".html", ".java", ".js", ".md", ".py", ".toml", ".yaml"}

FORMER = {
    "arena", "befall", "befalls", "befell", "bury", "door", "doors", "foldings", "haunted",
    "risen", "runbook", "situation", "situations", "strike", "strikes", "struck", "threat",
    "threats", "twin", "twins", "weaver", "zygote",
}  # fmt: skip

ALLOWED = {
    "engine/metrics/config.py": {"door"},  # the former name of a field, which works still
    "engine/net/doors.py": {"doors"},  # the former name of a module, which works still
    "harness/catalog.py": {"twins"},  # former names of what is in the catalog
    "tests/engine/metrics/test_metrics.py": {"door"},
    "tests/engine/net/test_access.py": {"doors"},
    "tests/harness/test_catalog.py": {"twins"},
}


def _files() -> list[str]:
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in KINDS]
    return [str(path.relative_to(ROOT)) for path in (*found, *ROOT.glob("*.md"))]


def old_words(name: str, text: str) -> set[str]:
    """The words in a file that should not be there, parts of names too."""
    found = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text)}
    return found & FORMER - ALLOWED.get(name, set())


def test_a_former_word_is_found_in_names_and_texts() -> None:
    assert old_words("a.py", "arena_for = 1\ndef f(door): pass\n") == {"arena", "door"}
    assert old_words("a.py", "class BrokenTwin: pass\n") == {"twin"}
    assert old_words("a.md", "What befalls a door.") == {"befalls", "door"}
    assert old_words("a.py", "STRIKE = 'outdoors'\n") == {"strike"}


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
