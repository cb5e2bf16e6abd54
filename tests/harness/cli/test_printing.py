"""What commands print of data commands nobody, in tables too; and there is one way to print it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness import cli as package
from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.cli import cli, list_command

HOSTILE = "::error::[/b][red]\x1b[2J\n::stop-commands::x"
OWN_PRINTERS = {"printing", "output", "report_command"}
"""Modules that print lines as they are: that makes them plain, and those for CI services."""


def metrics(name: str) -> str:
    line = {
        "kind": "batch", "batch": 1, "epoch": 1, "seconds": 0.5, "messages": {name: 1},
        "waiting": {name: 2}, "steps": {name: {"p50_us": 1.0, "p99_us": 2.0, "messages": 1}},
        "failed": {name: 0}, "driver": {name: 0.1}, "tasks": {},
        "state": {name: {"rows": 1, "bytes": 2, "files": 1}},
    }  # fmt: skip
    return json.dumps(line) + "\n"


def test_top_shows_names_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "metrics").write_text(metrics(HOSTILE))
    done = CliRunner().invoke(cli, ["top", str(tmp_path / "metrics"), "--once"])
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert not any(line.lstrip().startswith("::") for line in done.stdout.splitlines())
    assert "[/b]" in "".join(done.stdout.split())


def test_list_shows_titles_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CatalogEntry("x", "sink", HOSTILE, given(None))
    monkeypatch.setattr(list_command, "entries", lambda: [entry])
    done = CliRunner().invoke(cli, ["list"])
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "[/b]" in "".join(done.stdout.split())


def test_list_shows_names_whole_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "their.own.package.with.sinks.in.it:ReplicatesToTheWarehouse"
    found = [
        CatalogEntry(name, "sink", "a sink whose title is long too", given(None)),
        CatalogEntry("counting", "scenario", "sums", given(None)),
    ]
    monkeypatch.setattr(list_command, "entries", lambda: found)
    monkeypatch.setenv("COLUMNS", "40")
    done = CliRunner().invoke(cli, ["list"])
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["name", name, "counting"]
    assert done.stdout.splitlines()[1].endswith("a sink whose title is long too")


def test_a_configuration_without_an_end_is_refused(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no file without an end")
    words = ["start", "missing:app", "--checkpoint", str(tmp_path), "--config", "/dev/full"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "more than 256 MiB" in done.stderr


def test_commands_print_by_one_function() -> None:
    others = {
        f"{file.name}:{node.lineno}"
        for file in Path(str(package.__file__)).parent.glob("*.py")
        if file.stem not in OWN_PRINTERS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "click.echo")
        and not ast.unparse(node.args[0]).startswith("json.dumps(")
    }
    assert others == set()
