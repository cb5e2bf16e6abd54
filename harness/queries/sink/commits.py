"""SQLite connections whose COMMIT, or a statement that is a transaction of its own, fails where the
conductor says so. SQLite takes no notice of what its trace callback raises, so it is asked before;
what a whole script commits, and of many statements all but the first, fails after it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

NO_JOURNAL = "SQLite with journal_mode="
_JOURNAL = re.compile(r"\bPRAGMA\s+(?:\w+\.)?journal_mode\s*[=(]\s*[\"'`\[]?(\w+)", re.I)
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*", re.DOTALL)
_ENDING = ("COMMIT", "END")
_BEGUN_FOR = ("INSERT", "UPDATE", "DELETE", "REPLACE")
"""Before these Python begins a transaction, unless it is told not to."""
BACKUP = "BACKUP"
"""As what :meth:`sqlite3.Connection.backup` asks, which is no statement."""
_FACTORY_AT = 5
"""Where ``sqlite3.connect`` has the class of connections among its arguments."""


def journal_mode(sql: str) -> str | None:
    """What a statement does to the journal by which SQLite takes back what a crash has broken off:
    a text if there is none on the disk from now on, empty if there is, None if it does nothing.

    Of a crash then "the database file will very likely go corrupt" (sqlite.org/pragma.html).
    """
    found = _JOURNAL.search(sql)
    if found is None:
        return None
    mode = found[1].upper()
    return f"{NO_JOURNAL}{mode}" if mode in ("MEMORY", "OFF") else ""


def verb(sql: str) -> str:
    """The first word of a statement, in capitals."""
    found = _COMMENTS.match(sql)
    words = sql[found.end() if found else 0 :].split(None, 1)
    return words[0].upper().rstrip(";") if words else ""


class RefusableConnection(sqlite3.Connection):
    """A connection that asks at each statement. Where the answer to the end of a transaction is an
    OSError, the transaction is rolled back, and the caller gets what SQLite raises then; so it does
    where that is the answer to a statement outside of one, which is not run.

    Attributes:
        made: is given each connection that is made, and what was to be connected to.
    """

    made: ClassVar[Callable[[sqlite3.Connection, Any], None] | None] = None
    _asks: Callable[[str], None] | None = None
    _asked = False
    _asked_before = False
    _refused = False

    def __init__(self, database: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(database, *arguments, **named)
        if RefusableConnection.made is not None:
            RefusableConnection.made(self, database)

    def ask(self, asks: Callable[[str], None]) -> None:
        """From now on it is called with each statement, as it is run."""
        self._asks = asks
        self.set_trace_callback(self._traced)

    def _traced(self, sql: str) -> None:
        if self._asked_before:
            self._asked_before = False
            return
        if self._asks is None or (self._asked and verb(sql) in _ENDING):
            return
        try:
            self._asks(sql)
        except OSError:
            self._refused = True

    def ended_by(self, end: Callable[..., Any], *arguments: Any) -> Any:
        """End the transaction by this call, unless that is refused."""
        if self._asks is None or not self.in_transaction:
            return end(*arguments)
        try:
            self._asks("COMMIT")
        except OSError:
            self.rollback()  # as SQLite does by itself when the disk fails
            raise disk_error() from None
        self._asked = True
        try:
            return end(*arguments)
        finally:
            self._asked = False

    def run(self, call: Callable[..., Any], sql: str, *parameters: Any) -> Any:
        """Run a statement by this call, unless that is refused."""
        if verb(sql) in _ENDING:
            return self.ended_by(call, sql, *parameters)
        if self._asks is None or self.in_transaction or self._begins_before(sql):
            return call(sql, *parameters)
        try:
            self._asks(sql)
        except OSError:
            raise disk_error() from None
        self._asked_before, self._refused = True, False
        try:
            done = call(sql, *parameters)
        finally:
            self._asked_before = False
        if self._refused:
            raise disk_error()
        return done

    def _begins_before(self, sql: str) -> bool:
        """Whether Python begins a transaction before this statement."""
        told_not_to = self.isolation_level is None or getattr(self, "autocommit", None) is True
        return not told_not_to and verb(sql) in _BEGUN_FOR

    def scripted(self, run: Callable[..., Any], script: str) -> Any:
        """Run a script, which fails at its end if any commit in it was refused."""
        self._refused = False
        done = run(script)
        if self._refused:
            raise disk_error()
        return done

    def commit(self) -> None:
        self.ended_by(super().commit)

    def __exit__(self, *raised: Any) -> Any:
        leave = super().__exit__
        return leave(*raised) if raised[0] is not None else self.ended_by(leave, *raised)

    def backup(self, target: sqlite3.Connection, **how: Any) -> None:
        if isinstance(target, RefusableConnection) and target._asks is not None:
            try:
                target._asks(BACKUP)
            except OSError:
                raise disk_error() from None
        super().backup(target, **how)

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        return super().cursor(_refusable_cursor(factory))

    def execute(self, sql: str, *parameters: Any) -> Any:
        return self.cursor().execute(sql, *parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str) -> Any:
        return self.cursor().executescript(script)


class _RefusableCursor(sqlite3.Cursor):
    def execute(self, sql: str, *parameters: Any) -> Any:
        return self._run(super().execute, sql, *parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        return self._run(super().executemany, sql, parameters)

    def _run(self, call: Callable[..., Any], sql: str, *parameters: Any) -> Any:
        if isinstance(self.connection, RefusableConnection):
            return self.connection.run(call, sql, *parameters)
        return call(sql, *parameters)

    def executescript(self, script: str) -> Any:
        run = super().executescript
        if isinstance(self.connection, RefusableConnection):
            return self.connection.scripted(run, script)
        return run(script)


def disk_error() -> sqlite3.OperationalError:
    """What SQLite raises when the disk fails."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    error.sqlite_errorname = "SQLITE_IOERR"
    return error


def connect_refusable(
    connect: Callable[..., Any], *arguments: Any, **named: Any
) -> sqlite3.Connection:
    """``sqlite3.connect``, of a connection of the user's own kind that can be refused."""
    given, place = list(arguments), _FACTORY_AT
    if len(given) > place:
        given[place] = _refusable(given[place])
    else:
        named["factory"] = _refusable(named.get("factory", sqlite3.Connection))
    connection: sqlite3.Connection = connect(*given, **named)
    return connection


def ask(connection: sqlite3.Connection, asks: Callable[[str], None]) -> None:
    """Have it called with each statement of a connection, as it is run."""
    if isinstance(connection, RefusableConnection):
        connection.ask(asks)
    else:  # what a function has made
        connection.set_trace_callback(asks)


@lru_cache
def _refusable(kind: Any) -> Any:
    return _mixed(RefusableConnection, kind, sqlite3.Connection)


@lru_cache
def _refusable_cursor(kind: Any) -> Any:
    return _mixed(_RefusableCursor, kind, sqlite3.Cursor)


def _mixed(ours: type, kind: Any, usual: type) -> Any:
    if kind is usual:
        return ours
    if isinstance(kind, type) and issubclass(kind, ours):
        return kind
    return type(kind.__name__, (ours, kind), {}) if isinstance(kind, type) else kind
