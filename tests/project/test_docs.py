"""What the README and the docs tell people to type and to write."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bettong.harness.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text("utf-8")):
            if found[1] == language:
                yield page.name, found[2]


def commands() -> list[tuple[str, str]]:
    """Every call of ``bettong`` in a shell block."""
    return [
        (page, part.strip())
        for page, text in blocks("sh")
        for line in text.replace("\\\n", " ").splitlines()
        for part in line.split("&&")
        if re.match(r"(\.venv/bin/)?bettong ", part.strip())
    ]


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_command_has_a_name_and_options_that_exist(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, f"{page}: {line}"
    try:
        command.make_context(words[0], words[1:])
    except click.BadParameter as e:  # a file that the reader makes
        assert "does not exist" in str(e), f"{page}: {line}: {e}"
    except click.exceptions.Exit as e:
        assert e.exit_code == 0


@pytest.mark.parametrize(("page", "code"), list(blocks("python")))
def test_every_python_sample_compiles_and_imports_what_exists(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bettong"):
            module = __import__(str(node.module), fromlist=["_"])
            for alias in node.names:
                assert hasattr(module, alias.name), f"{page}: {node.module} has no {alias.name}"
