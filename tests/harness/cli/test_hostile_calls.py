"""No wrong call ends in a traceback, a false pass, or anything left behind."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result
from hostile_calls import Call, calls, prepare

from bettong.harness.cli import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    work, temporary = tmp_path / "a" / "b" / "work", tmp_path / "temporary"
    work.mkdir(parents=True)
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    prepare(work)
    yield tmp_path


def wrong(call: Call, done: Result, folder: Path) -> list[str]:
    """What is wrong with how a call has ended."""
    found = []
    output = done.stdout + done.stderr
    if "Traceback" in output or "by a defect" in output:
        found.append("a traceback, or what nobody foresaw")
    if done.exit_code not in (0, 1, 2, 3):
        found.append(f"exit code {done.exit_code}")
    if done.exit_code == 1 and not anomalies(done.stdout):
        found.append("1 without an anomaly")
    said = done.stderr
    if "--progress-json" in call.words:
        said = "".join(line for line in said.splitlines(True) if not is_progress(line))
    if done.exit_code == 2 and (not said.startswith("bettong: ") or said.count("\n") != 1):
        found.append(f"not one clear line: {done.stderr[-300:]!r}")
    if "\x1b[2J" in output or any(line.lstrip().startswith("::") for line in output.splitlines()):
        found.append("data that commands a terminal or a CI service")
    if left := list((folder / "temporary").iterdir()):
        found.append(f"left behind: {left}")
    if done.exit_code in (2, 3) and (fresh := valid_results(folder / "a")):
        found.append(f"a fresh pass: {fresh}")
    return found


def is_progress(line: str) -> bool:
    try:
        return "subject" in json.loads(line)
    except ValueError:
        return False


def anomalies(output: str) -> bool:
    try:
        value = json.loads(output)
    except ValueError:
        return "✘" in output or "invalid" in output
    results = value if isinstance(value, list) else [value]
    return any(r["anomalies"] or r["counterexamples"] for r in results)


def valid_results(folder: Path) -> list[str]:
    found = []
    for path in folder.rglob("result.json"):
        try:
            if json.loads(path.read_text()).get("verdict") == "valid":
                found.append(str(path))
        except (ValueError, AttributeError):
            continue
    return found


def children() -> dict[psutil.Process, int]:
    """All of this process, with their sessions. In those that were there before, such as the warm
    ones that tests share, processes come and go."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(ProcessLookupError):
            found[process] = os.getsid(process.pid)
    return found


def run(count: int, seed: int, folder: Path) -> dict[str, list[str]]:
    runner, bad = CliRunner(), {}
    runner.invoke(cli, ["check", "e.jsonl", "o.jsonl"])  # starts the one watchdog that stays
    before = children()
    others = {session for session in before.values() if session != os.getsid(0)}
    for call in calls(count, seed):
        done = runner.invoke(cli, list(call.words))
        found = wrong(call, done, folder)
        more = {p: session for p, session in children().items() if session not in others}
        if left := more.keys() - before.keys():
            found.append(f"processes left: {left}")
        if found:
            bad[str(call)] = found
        for path in (folder / "a").rglob("result.json"):
            if path.parent.name != "result":
                path.unlink()
    return bad


def test_a_sample_of_wrong_calls_ends_well(folder: Path) -> None:
    assert run(120, 1, folder) == {}


@pytest.mark.slow
def test_all_wrong_calls_end_well(folder: Path) -> None:
    assert run(2000, 2, folder) == {}
