"""What the pages say about adding something of one's own: done in a temporary package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs_samples import write_files

RUN = "from bettong.harness.cli import main; main()"


def bettong(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def python(folder: Path, code: str) -> str:
    env = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fault_of_a_package_fires_in_a_real_run(tmp_path: Path) -> None:
    write_files("add-a-fault.md", tmp_path)
    done = bettong(
        tmp_path,
        *("run", "counting", "--runner", "in-process", "--faults", "freeze.yaml"),
        *("--out", "out", "--json"),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    runs = json.loads(done.stdout)["runs"]
    injected = [run for run in runs if run["faults"]]
    assert [run["faults"] for run in injected] == [["freeze(receiver, batch=1/source.plan)"]]
    assert injected[0]["outcome"] == "good"


def test_a_mistake_in_a_package_s_fault_gets_the_same_errors(tmp_path: Path) -> None:
    write_files("add-a-fault.md", tmp_path)
    (tmp_path / "wrong.yaml").write_text("faults: [{freeze: {nod: receiver, during: metadata}}]")
    done = bettong(tmp_path, "run", "counting", "--faults", "wrong.yaml", "--out", "out")
    assert done.returncode == 2
    assert "did you mean node?" in done.stderr


def test_a_command_of_a_package_is_a_command(tmp_path: Path) -> None:
    write_files("add-a-command.md", tmp_path)
    assert bettong(tmp_path, "hello", "world").stdout == "hello world\n"
    assert "Greet somebody" in bettong(tmp_path, "--help").stdout


def test_a_protocol_of_a_package_is_listed_and_searched(tmp_path: Path) -> None:
    write_files("add-a-protocol.md", tmp_path)
    listed = json.loads(bettong(tmp_path, "list", "--json").stdout)
    assert {"shout"} <= {entry["name"] for entry in listed if entry["kind"] == "protocol"}
    bounds = ("--eot", "6", "--eff", "3", "--crashes", "0")
    found = bettong(tmp_path, "protocol", "shout", *bounds, "--json")
    assert found.returncode == 1, found.stderr
    assert json.loads(found.stdout)["verdict"] == "invalid"


def test_a_sink_of_a_package_is_listed_and_can_be_loaded(tmp_path: Path) -> None:
    write_files("add-a-sink.md", tmp_path)
    listed = json.loads(bettong(tmp_path, "list", "--json").stdout)
    (own,) = (entry for entry in listed if entry["name"] == "own_sink:Own")
    assert own["expect"] == "invalid"
    assert own["title"] == "rows in SQLite, inserted: at-least-once"
    load = "from bettong.harness.catalog import find; print(find('own_sink:Own', 'sink').load())"
    assert python(tmp_path, load) == "own_sink:Own\n"


def test_the_framing_of_a_package_distinguishes_requests(tmp_path: Path) -> None:
    write_files("add-a-server.md", tmp_path)
    code = """
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
framing = AdaptiveFraming()
parts = framing.client(b"DO put 1\\nDO get 1\\n")
print(framing.recognised, [part.request.label for part in parts])
print([reply.to for reply in framing.server(b"ok\\n1\\n")])
"""
    assert python(tmp_path, code) == "do-lines ['put', 'get']\n[(0,), (1,)]\n"


def test_a_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    write_files("add-a-checker.md", tmp_path)
    code = """
from bettong.harness.checkers import Record
from bettong.harness.checkers.registry import History
from no_gaps import check_no_gaps
def history(*numbers): return History([], [Record(f"m/{n}", None, n) for n in numbers], [])
print([a.note for a in check_no_gaps(history(0, 1, 2))])
print([a.note for a in check_no_gaps(history(0, 2))])
"""
    assert python(tmp_path, code) == "[]\n['number 1 is missing']\n"


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        (("", ""), "valid", ""),
        (("default=-1) + 1", "default=-1) + 2"), "invalid", "number 6 is missing"),
        (("missing = ", "missing = 1 / 0 + "), "unknown", "the checker no-gaps failed: ZeroDiv"),
    ],
    ids=["right", "finds", "fails"],
)
def test_a_checker_of_a_package_judges_real_runs(
    tmp_path: Path, change: tuple[str, str], verdict: str, words: str
) -> None:
    write_files("add-a-checker.md", tmp_path)
    path = tmp_path / "no_gaps.py"
    path.write_text(path.read_text().replace(*change) if change[0] else path.read_text())
    asked = ("run", "counting", "--runner", "in-process", "--faults", "none")
    done = bettong(tmp_path, *asked, "--out", "out", "--json")
    result = json.loads(done.stdout)
    assert result["verdict"] == verdict, done.stderr
    assert words in done.stdout
    if verdict == "invalid":
        assert {a["kind"] for a in result["anomalies"]} == {"Gap"}
        assert result["guarantee"] == "at-most-once"
        report = (tmp_path / "out" / "junit.xml").read_text()
        assert "number 6 is missing" in report
