"""One process at a time writes to a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bettong.lineage.errors import UsageError
from bettong.lineage.own_folder import own_folder

HOLDS = """
import os, sys
from pathlib import Path
from bettong.lineage.own_folder import own_folder

with own_folder(Path(sys.argv[1])):
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""


def _holder(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_who_comes_second_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    """Also while a process that it has forked lives on."""
    with _holder(tmp_path / "out") as holder:
        with (
            pytest.raises(UsageError, match="another run still writes to"),
            own_folder(tmp_path / "out"),
        ):
            pass
        holder.kill()
        holder.wait()
        with own_folder(tmp_path / "out"):
            pass
