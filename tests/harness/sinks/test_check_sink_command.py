"""The command's own mistakes end with one line and exit code 2, before Spark is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BETTONG = Path(sys.executable).with_name("bettong")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "is no target"),
        (["nowhere.py:Sink"], "there is no such Python file"),
        (["format:parqet"], "did you mean parquet"),
        (["format:parquet", "--option", "oops"], "write NAME=VALUE"),
        (
            ["format:parquet", "--option", "password=hidden1 x", "--endpoint", "token:hidden1"],
            "***",
        ),
        (["format:parquet", "--endpoint", "db=nowhere"], "is not HOST:PORT"),
        (["format:parquet", "--expect", "exactly-once"], "exactly-once"),
        (["format:parquet", "--also", "nothing"], "new-checkpoint"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [BETTONG, "check-sink", *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "hidden1" not in done.stderr + done.stdout
    assert done.stdout == ""
