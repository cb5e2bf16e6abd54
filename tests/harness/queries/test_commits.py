"""A COMMIT of SQLite that is refused fails, however it is asked for, and so does a statement that
is a transaction of its own."""

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


def by_itself(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO t VALUES (1)")


def by_cursor_itself(db: sqlite3.Connection) -> None:
    db.cursor().execute("INSERT INTO t VALUES (?)", (1,))


def each_by_itself(db: sqlite3.Connection) -> None:
    db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])


@pytest.mark.parametrize(
    ("write", "refused", "left"),
    [
        (by_itself, 1, 0),
        (by_cursor_itself, 1, 0),
        (each_by_itself, 1, 0),
        (each_by_itself, 2, 2),  # SQLite takes no notice in their midst
    ],
)
def test_a_statement_outside_of_a_transaction_that_is_refused_fails(
    path: Path, write: Write, refused: int, left: int
) -> None:
    asked: list[str] = []

    def asks(sql: str) -> None:
        asked.append(verb(sql))
        if len(asked) == refused:
            raise OSError(errno.EIO, "refused")

    db = connect_refusable(sqlite3.connect, path, isolation_level=None)
    ask(db, asks)
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        write(db)
    assert count(path) == left
    asked.clear()
    refused = 0
    write(db)
    db.close()
    assert asked == ["INSERT"] * (2 if write is each_by_itself else 1)
    assert count(path) == left + len(asked)


def test_each_statement_is_asked_for_once(path: Path) -> None:
    asked: list[str] = []
    db = connect_refusable(sqlite3.connect, path)
    ask(db, lambda sql: asked.append(verb(sql)))
    db.execute("CREATE TABLE u (n)")
    db.execute("PRAGMA user_version = 3")
    db.execute("SELECT * FROM u")
    by_block(db)
    with pytest.raises(sqlite3.OperationalError, match="syntax"):
        db.execute("DROP TABLES")
    db.execute("DROP TABLE u")
    db.close()
    told = ["CREATE", "PRAGMA", "SELECT", "BEGIN", "INSERT", "COMMIT", "DROP", "DROP"]
    assert asked == told


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


def test_an_error_is_tried_where_a_transaction_ends_and_at_one_of_one_statement() -> None:
    step = "batch=1/sink.file=3.{}"
    tried = {
        operation: [
            fault.id for fault in faults_at(CrashPoint(Point(step.format(operation)), 1, ""))
        ]
        for operation in ("commit", "begin", "insert")
    }
    for ends in ("commit", "insert"):
        assert f"storage(EIO, before batch=1/sink.file=3.{ends})" in tried[ends]
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
