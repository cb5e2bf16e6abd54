"""What the README and the docs tell people to type and to write, and the files that a reader who
follows a page has then."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {p.name: p for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|yaml))\n")
COMMAND = re.compile(r"(\.venv/bin/)?bettong ")


def blocks(language: str, page: str | None = None) -> Iterator[tuple[str, str]]:
    """(page, text) of the blocks of a language; of all pages or one."""
    for name, path in PAGES.items():
        for found in BLOCK.finditer(path.read_text("utf-8")):
            if found[1] == language and page in (None, name):
                yield name, found[2]


def commands(page: str | None = None) -> list[tuple[str, str]]:
    """(page, line) of every call of ``bettong`` in a shell block."""
    return [
        (name, part.strip())
        for language in ("sh", "")
        for name, text in blocks(language, page)
        for line in text.replace("\\\n", " ").splitlines()
        for part in line.split("&&")
        if COMMAND.match(part.strip())
    ]


def arguments(line: str) -> list[str]:
    """The words after ``bettong``."""
    return shlex.split(line, comments=True)[1:]


def files(page: str) -> dict[str, str]:
    """The files that a page shows: blocks that begin with a comment of the file's name."""
    found = {}
    for language in ("python", "toml", "yaml"):
        for _, text in blocks(language, page):
            if name := FILE.match(text):
                found[name[1]] = text
    return found


def write_files(page: str, folder: Path) -> None:
    """Write a page's files; what its ``pyproject.toml`` declares can be found as if installed."""
    for name, text in files(page).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if name == "pyproject.toml":
            installed = folder / "sample-0.dist-info"
            installed.mkdir()
            points = re.sub(r"\[project\.entry-points\.\"(.*)\"\]", r"[\1]", text)
            (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: sample\nVersion: 0\n")
            (installed / "entry_points.txt").write_text(points.replace('"', ""))
