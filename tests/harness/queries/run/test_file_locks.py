"""Who waits for what a process has locked."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bettong.harness.queries.run.file_locks import LOCKS, FileLocks

pytestmark = pytest.mark.skipif(not LOCKS.exists(), reason="only Linux tells of locks")

ME = {os.getpid()}
LOCKED = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX)"


def test_who_waits_for_a_lock_is_told_until_it_has_it(tmp_path: Path) -> None:
    locks, path = FileLocks(tmp_path), tmp_path / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert (locks.held_to_write(ME), locks.waited_for(ME)) == (True, False)
        other = subprocess.Popen([sys.executable, "-c", LOCKED, str(path)])
        while not locks.waited_for(ME):
            assert other.poll() is None
        assert not locks.waited_for({*ME, other.pid})
        assert not locks.waited_for({other.pid})
    assert other.wait() == 0
    assert (locks.held_to_write(ME), locks.waited_for(ME)) == (False, False)


def test_a_database_is_locked_while_it_is_written_only(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    db = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    db.execute("CREATE TABLE rows (id TEXT)")
    db.execute("BEGIN")
    db.execute("SELECT * FROM rows").fetchall()
    assert not locks.held_to_write(ME)
    db.execute("INSERT INTO rows VALUES ('m/1')")
    assert locks.held_to_write(ME)
    db.execute("COMMIT")
    assert not locks.held_to_write(ME)
    db.close()


def test_what_is_locked_elsewhere_is_another_runs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert FileLocks(tmp_path).held_to_write(ME)
        assert not FileLocks(tmp_path / "run").held_to_write(ME)


def test_where_nobody_tells_of_locks_there_is_none(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        locks = FileLocks(tmp_path, told=tmp_path / "none")
        assert not locks.held_to_write(ME)
        assert not locks.waited_for(ME)
