"""``bettong doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness.cli.doctor import examine
from bettong.harness.cli.doctor_command import command


def test_every_missing_thing_comes_with_its_cost_and_its_remedy() -> None:
    for finding in examine():
        assert finding.found
        if finding.status != "ok":
            assert finding.cost and finding.remedy


def test_without_java_it_ends_2_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    answer = CliRunner().invoke(command, ["--json"])
    assert answer.exit_code == 2
    java = next(f for f in json.loads(answer.stdout) if f["name"] == "Java")
    assert java["status"] == "missing"
    assert "openjdk-17" in java["remedy"]


def test_a_toxiproxy_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = tmp_path / "toxiproxy-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    monkeypatch.delenv("TOXIPROXY_URL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert next(f for f in examine() if f.name == "Toxiproxy").found == str(server)
