"""A COMMIT of SQLite that is refused fails, however it is asked for."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.kinds import faults_at
from bettong.harness.queries.sink.commits import ask, connect_refusable, journal_mode, verb

Write = Callable[[sqlite3.Connection], None]


class Own(sqlite3.Connection):
    """A user's own kind of connection."""


def by_block(db: sqlite3.Connection) -> None:
    with db:
        db.execute("INSERT INTO t VALUES (1)")


def by_call(db: sqlite3.Connection) -> None:
    db.executemany("INSERT INTO t VALUES (?)", [(1,)])
    db.commit()


def by_statement(db: sqlite3.Connection) -> None:
    db.isolation_level = None
    db.execute("BEGIN")
    db.execute("INSERT INTO t VALUES (1)")
    db.execute("COMMIT")


def by_cursor(db: sqlite3.Connection) -> None:
    cursor = db.cursor()
    cursor.execute("INSERT INTO t VALUES (?)", (1,))
    cursor.execute("END;")


def by_script(db: sqlite3.Connection) -> None:
    db.executescript("BEGIN; INSERT INTO t VALUES (1); COMMIT;")


def count(path: Path) -> int:
    db = sqlite3.connect(path)
    (found,) = db.execute("SELECT count(*) FROM t").fetchone()
    db.close()
    return int(found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    db = sqlite3.connect(tmp_path / "rows.db")
    db.execute("CREATE TABLE t (n)")
    db.close()
    return tmp_path / "rows.db"


@pytest.mark.parametrize("write", [by_block, by_call, by_statement, by_cursor, by_script])
def test_a_commit_that_is_refused_fails_and_leaves_nothing(path: Path, write: Write) -> None:
    asked: list[str] = []
    refuse = [True]

    def asks(sql: str) -> None:
        asked.append(verb(sql))
        if refuse[0] and verb(sql) in ("COMMIT", "END"):
            raise OSError(errno.EIO, "refused")

    db = connect_refusable(sqlite3.connect, path)
    ask(db, asks)
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        write(db)
    ended = [one for one in asked if one in ("COMMIT", "END")]
    assert len(ended) == 1
    assert not db.in_transaction
    assert count(path) == (write is by_script)  # its caller knows no better
    refuse[0] = False
    before = count(path)
    write(db)
    db.close()
    assert count(path) == before + 1


def test_a_connection_is_of_the_users_own_kind(path: Path) -> None:
    for arguments in ((path, 5.0, 0, "DEFERRED", True, Own), (path,)):
        named = {} if len(arguments) > 1 else {"factory": Own}
        db = connect_refusable(sqlite3.connect, *arguments, **named)
        assert isinstance(db, Own)
        ask(db, lambda sql: None)
        by_block(db)
        assert db.cursor(sqlite3.Cursor).execute("SELECT count(*) FROM t").fetchone() is not None
        db.close()
    assert count(path) == 2


def test_what_is_wrong_with_a_statement_is_raised_as_ever(path: Path) -> None:
    db = connect_refusable(sqlite3.connect, path)
    ask(db, lambda sql: None)
    with pytest.raises(sqlite3.IntegrityError), db:
        db.execute("CREATE TABLE u (n PRIMARY KEY)")
        db.executemany("INSERT INTO u VALUES (?)", [(1,), (1,)])
    assert not db.in_transaction
    db.close()


def test_an_error_is_tried_where_a_transaction_ends() -> None:
    step = "batch=1/sink.file=3.{}"
    tried = {
        operation: [
            fault.id for fault in faults_at(CrashPoint(Point(step.format(operation)), 1, ""))
        ]
        for operation in ("commit", "begin")
    }
    assert "storage(EIO, before batch=1/sink.file=3.commit)" in tried["commit"]
    assert len(tried["begin"]) == 1


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("PRAGMA journal_mode=MEMORY", "SQLite with journal_mode=MEMORY"),
        ("pragma main.journal_mode = 'off'", "SQLite with journal_mode=OFF"),
        ("PRAGMA journal_mode(wal)", ""),
        ("PRAGMA journal_mode", None),
        ("INSERT INTO t VALUES (1)", None),
    ],
)
def test_a_journal_that_is_not_on_the_disk_is_told(sql: str, mode: str | None) -> None:
    assert journal_mode(sql) == mode
