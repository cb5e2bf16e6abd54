"""The command: its own mistakes end with one line and exit code 2, before Spark is started; what
it prints shows the same again."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from users_sinks import USERS

from bettong.harness.cli.query_options import folders_of

BETTONG = Path(sys.executable).with_name("bettong")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "is no target"),
        (["nowhere.py:Sink"], "there is no such Python file"),
        (["format:parqet"], "did you mean parquet"),
        (["format:parquet", "--option", "oops"], "write NAME=VALUE"),
        (
            ["format:parquet", "--option", "password=hidden1 x", "--endpoint", "token:hidden1"],
            "***",
        ),
        (["format:parquet", "--endpoint", "db=nowhere"], "is not an address: write HOST:PORT"),
        (["format:parquet", "--expect", "exactly-once"], "exactly-once"),
        (["format:parquet", "--also", "nothing"], "new-checkpoint"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [BETTONG, "check-sink", *arguments], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "hidden1" not in done.stderr + done.stdout
    assert done.stdout == ""


def bettong(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    command = [BETTONG, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=1000, cwd=where)


@pytest.mark.spark
def test_the_printed_command_shows_the_duplicates_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(USERS)
    crash = "crash(driver, before batch=1/commits)"
    found = bettong("check-sink", "mine.py:Mine", "--only", crash, where=tmp_path)
    assert found.returncode == 1, found.stderr
    assert "m/000020 … m/000039 are there twice" in found.stdout
    printed = found.stdout.partition("See it again: ")[2].splitlines()[0]
    again = bettong(*shlex.split(printed)[1:], "--json", where=tmp_path)
    assert again.returncode == 1, again.stderr
    result = json.loads(again.stdout)
    assert [c["faults"] for c in result["counterexamples"]] == [[crash]]
    assert len(result["counterexamples"][0]["anomalies"]) == 20


@pytest.mark.spark
@pytest.mark.slow
def test_a_target_that_cannot_be_used_does_not_keep_others_from_their_answer(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(USERS)
    targets = ["nowhere.py:Sink", "mine.py:Mine", "format:json"]
    only = ["--only", "crash(driver, before batch=1/commits)"]
    done = bettong("check-sink", *targets, *only, where=tmp_path)
    assert done.returncode == 1, done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines()[-3:]] == [
        ["nowhere.py:Sink", "level", "not"],
        ["mine.py:Mine", "at-least-once", "invalid"],
        ["format:json", "effectively-once", "valid"],
    ]
    assert "there is no such Python file" in done.stdout
    report = (tmp_path / "bettong-out" / "report.html").read_text()
    assert "mine.py-Mine/report.html" in report


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("Blind", 3, "read() returned nothing after a run without faults: it must return the rows"),
        ("Elsewhere", 2, 'does not use env.checkpoint: give it .option("checkpointLocation", env'),
    ],
)
def test_a_sink_that_cannot_be_judged_is_one_line(
    tmp_path: Path, name: str, code: int, message: str
) -> None:
    (tmp_path / "mine.py").write_text(USERS)
    done = bettong("check-sink", f"mine.py:{name}", "--quiet", where=tmp_path)
    assert done.returncode == code
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_targets_whose_names_come_to_the_same_have_folders_of_their_own(tmp_path: Path) -> None:
    targets = ["a/b.py:S", "a-b.py:S", "a-b.py-S-2", "a/b.py:S"]
    assert folders_of(targets, tmp_path) == {
        "a/b.py:S": tmp_path / "a-b.py-S",
        "a-b.py:S": tmp_path / "a-b.py-S-2",
        "a-b.py-S-2": tmp_path / "a-b.py-S-2-2",
    }
