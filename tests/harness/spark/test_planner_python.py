from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bettong.harness.spark.planner_python import ask_fork_server

MODULE = """
import json, os, sys
with open(sys.argv[1], "w") as file:
    json.dump({"arguments": sys.argv[2:], "odd": os.environ.get("ODD")}, file)
sys.exit(int(sys.argv[2]))
"""
ODD = 'a "quoted" \\ back\nslash \u00e9 \udc80 \U0001f998'


def test_a_module_is_run_with_its_arguments_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asked_child.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ODD", ODD)
    reported, path = tmp_path / "reported", str(tmp_path / "forks")
    server = [sys.executable, "-m", "bettong.harness.processes.fork_server", path, "json"]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        for status in (0, 7):
            arguments = [str(status), ODD, "x" * 300_000]
            asked = ask_fork_server(path, "asked_child", [str(reported), *arguments])
            assert asked == status
            assert json.loads(reported.read_text()) == {"arguments": arguments, "odd": ODD}
        process.communicate()


def test_where_no_fork_server_is_nothing_is_run(tmp_path: Path) -> None:
    assert ask_fork_server(str(tmp_path / "none"), "asked_child", []) is None
