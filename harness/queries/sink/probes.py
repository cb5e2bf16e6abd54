"""What a sink's Python code does to its files, made steps: before each operation that changes
something durable, the conductor is asked.

Installed at the start of the driver host and of every Python process of Spark (``site/``). Files
are seen by Python's audit events, writes to them by an ``open`` of ours, SQLite by its trace
callback, DuckDB where it connects, what else changes by looking between the lines of a
``foreachBatch`` function, so that nothing of the sink needs to be changed. Which run the process
works for is read from a file, for processes live longer than runs.

What the code changes elsewhere than in the run's folder is noted, for runs that go on at the same
time may share it; it is a step only where that is asked for.
"""

from __future__ import annotations

import _posixsubprocess
import builtins
import fcntl
import io
import json
import os
import re
import shutil
import sqlite3
import sqlite3.dbapi2
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from bettong.engine.steps import Instrumentation, Recorder
from bettong.harness.faults.step_ids import CONCURRENT
from bettong.harness.processes import clock_ahead
from bettong.harness.queries.sink import triggers
from bettong.harness.queries.sink.aiming import NOTED_PROCESSES, NOTED_TURNS, NOTES, aim_file
from bettong.harness.queries.sink.commits import (
    BACKUP,
    RefusableConnection,
    ask,
    connect_refusable,
    journal_mode,
    verb,
)
from bettong.harness.queries.sink.concurrent import PROPERTY, head
from bettong.harness.queries.sink.file_steps import (
    CHANGED,
    CHANGING_SQL,
    HALF,
    LINE,
    LISTED,
    LOCK,
    LOOK,
    OUTSIDE,
    PRAGMA,
    READING_SQL,
    STEP,
)
from bettong.harness.queries.sink.half_writes import HalfWrites
from bettong.harness.queries.sink.imports import when_imported
from bettong.harness.queries.sink.lines import Line
from bettong.harness.queries.sink.paths import is_file, open_as, path_of, regular, whole
from bettong.harness.queries.sink.processes import FORKS, PROCESSES, command_of
from bettong.harness.queries.sink.ran_lines import RanLines
from bettong.harness.queries.sink.task_moments import CAPTURES, WAITS, TaskMoments
from bettong.harness.queries.sink.unseen import LineMoments
from bettong.lineage.trace import TraceEvent

_NOBODYS = ("/dev/", "/proc/", "/sys/")
_CHANGING = {
    "os.rename": (1, 3),
    "os.remove": (0, 1),
    "os.mkdir": (0, 2),
    "os.rmdir": (0, 1),
    "os.link": (1, 3),
    "os.symlink": (1, 2),
    "os.truncate": (0, None),
}
"""Where each audit event has the path that is changed, and the folder within which it is, if that
is given by its file descriptor."""
_LISTING = ("os.scandir", "os.listdir")
_LOCKING = ("fcntl.flock", "fcntl.lockf")
_SOURCE = ".py"
"""How the names of files end that Python itself looks at: PySpark has it read the stack in each
call of Spark's."""
_ASKING = ("stat", "lstat", "access")
_ASIDE = (CHANGED, HALF, LINE, LOCK, LOOK)
"""Moments at which the sink's code is not about to change anything by an operation that is seen."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_BESIDE_SQLITE = ("", "-journal", "-wal", "-shm")
_DURABLE_SQL = ("COMMIT", "END", "RELEASE")
_SHOWN = 120
"""So many characters of a statement tell what it does."""
_WRITES = {
    **dict.fromkeys(("write", "writev", "pwrite", "pwritev", "sendfile"), 0),
    **dict.fromkeys(("copy_file_range", "splice"), 1),
}
"""Where each call of ``os`` that writes has the number of the file."""
_SHARED = (0, 2)
"""How ``mmap`` is asked for memory that is the file itself: by default, and to be written."""
_PAST_PYTHON = "_USE_CP_SENDFILE"
"""By this ``shutil`` copies a file within the kernel, of which no write is seen."""
_OPEN = io.open
_WRITE = os.write
_NUMBER = r"\bPRAGMA\s+(?:\w+\.)?(?:user_version|application_id)\b"
"""Of what a pragma sets, these numbers are the user's own, such as that of the last batch."""
_READS_NUMBER, _SETS_NUMBER = (re.compile(_NUMBER + more, re.I) for more in ("", r"\s*[=(]"))


class _SeenFile(io.FileIO):
    """A file that asks before each write that reaches it, and each time that it is cut."""

    happens: Callable[[str], None]
    half_writes: HalfWrites

    def write(self, data: Any, /) -> int:
        return self.half_writes.write(self.happens, super().write, data)

    def truncate(self, size: int | None = None, /) -> int:
        self.happens("truncate")
        return super().truncate(size)


class Probe:
    """The probe of this process."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        self._known: tuple[int, int] | None = None
        self._folder: str | None = None
        self._elsewhere = False
        self._node = ""
        self._incarnation = 1
        self._recorder: Recorder | None = None
        self._busy = threading.local()
        self._ran = RanLines(self._write_note)
        line_moments = self._changed, self._line_begins, self._ran.begins
        self._lines = LineMoments(self._aimed_at, *line_moments, self._note_turns)
        self._tasks = TaskMoments(self._aimed_at, *line_moments, self._lines.seen_otherwise)
        self._is_tied = False
        self._half_writes = HalfWrites(self._era, stays_full=False)

    def install(self) -> None:
        """From now on, for the life of the process."""
        sys.addaudithook(self._audit)
        RefusableConnection.made = self._connected
        connect = partial(connect_refusable, sqlite3.connect)
        sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]
        sqlite3.Connection = sqlite3.dbapi2.Connection = RefusableConnection  # type: ignore[misc]
        for name, at in _WRITES.items():
            if hasattr(os, name):
                _put_in_place(name, partial(self._asking_before, at=at))
        for name in _ASKING:
            _put_in_place(name, self._looking_before)
        io.open = builtins.open = self._open
        if hasattr(shutil, _PAST_PYTHON):
            setattr(shutil, _PAST_PYTHON, False)
        when_imported("duckdb", self._watch_duckdb)
        when_imported("pyspark.logger.worker_io", self._watch_workers)
        when_imported(triggers.MODULE, triggers.have_no_interval)
        for waits in WAITS:
            _put_in_place(waits, self._tasks.waiting)
        subprocess.Popen.poll = self._tasks.waiting(  # type: ignore[method-assign]
            subprocess.Popen.poll
        )
        spawn = _posixsubprocess.fork_exec
        _posixsubprocess.fork_exec = self._spawning(spawn)
        # What asks for the time need not have done anything before of which the probe is told.
        os.register_at_fork(after_in_child=self._aimed_at)
        self._aimed_at()

    def _watch_workers(self, module: ModuleType) -> None:
        """See what a Python worker begins and ends of the user's code."""
        setattr(module, CAPTURES, self._tasks.around(getattr(module, CAPTURES)))

    def _spawning(self, spawn: Callable[..., Any]) -> Callable[..., Any]:
        """Of what ``multiprocessing`` starts anew Python tells nobody."""

        def spawned(*arguments: Any) -> Any:
            self._starts_process(f"the process {Path(os.fsdecode(arguments[1][0])).name!r}")
            return spawn(*arguments)

        return spawned

    def _starts_process(self, command: str) -> None:
        in_batch, in_task = self._lines.process_starts(command), self._tasks.starts(command)
        if in_batch or in_task:
            self._write_note(self._file.with_name(NOTED_PROCESSES), " ".join(command.split()))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and not self._is_tied:
            self._tie()
        elif event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike):
                if (flags or 0) & _WRITING:
                    self._happens("open", path)
                else:
                    self._looks(path)
        elif event in _LISTING:
            self._looks(arguments[0], lists=True)
        elif event in _LOCKING:
            number, how, *_ = arguments
            if not how & fcntl.LOCK_UN and (path := regular(number)) and self._concerns(path):
                self._happens(LOCK, path)
        elif event == "mmap.__new__":
            number, _, access, _ = arguments
            if access in _SHARED and (path := regular(number)) and self._concerns(path):
                self._busy.now = True  # they read what is in the file
                try:
                    self._lines.maps(path)
                    self._tasks.maps(path)
                finally:
                    self._busy.now = False
        elif event in PROCESSES or event in FORKS:
            self._starts_process(command_of(event, arguments))
        elif event in _CHANGING:
            at, folder_at = _CHANGING[event]
            path, folder = arguments[at], -1 if folder_at is None else arguments[folder_at]
            if isinstance(path, int):  # a file that is open: os.ftruncate
                path = open_as(path)
            elif folder >= 0:  # a name within a folder that is open, as shutil.rmtree has it
                path = f"{open_as(folder)}/{os.fsdecode(path)}"
            self._happens(event.partition(".")[2], path)

    def _looks(self, path: Any, lists: bool = False, sql: str = "") -> None:
        if not self._lines.reads() and not self._tasks.reads():
            return
        if isinstance(path, str | bytes | os.PathLike):
            path = f"{whole(path)}/{LISTED}" if lists else path
            # Others are no sign that it keeps something elsewhere.
            if self._concerns(path) and not whole(path).endswith(_SOURCE):
                self._happens(LOOK, path, sql)

    def _tie(self) -> None:
        """Have the lines of ``foreachBatch`` functions watched, once PySpark is there."""
        given = getattr(sys.modules.get("pyspark.sql.utils"), "ForeachBatchFunction", None)
        java = getattr(sys.modules.get("py4j.clientserver"), "ClientServerConnection", None)
        if given is None or java is None:
            return
        self._is_tied = True
        begin = given.__init__

        def init(function: Any, session: Any, each: Callable[..., Any]) -> None:
            begin(function, session, self._lines.of(each))

        given.__init__ = init
        java.send_command = self._lines.around(java.send_command)
        self._lines.turns.install()
        threading.Thread.start = self._lines.starting(  # type: ignore[method-assign]
            threading.Thread.start
        )

    def _open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        """``open``; a file of the sink's that is written is one whose writes are seen."""
        more = (buffering, encoding, errors, newline, closefd, opener)
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if not writes or self._aimed_at() is None:
            return _OPEN(file, mode, *more)
        path = path_of(file) if opener is None else None
        if opener is None and (path is None or not self._concerns(path)):
            return _OPEN(file, mode, *more)
        binary = "b" in mode
        # raises what is wrong with them
        _OPEN(os.devnull, mode.replace("x", "w"), buffering, encoding, errors, newline).close()
        given = file if isinstance(file, int) else os.fsdecode(file)
        raw = _SeenFile(given, mode.replace("b", "").replace("t", ""), closefd, opener)
        if opener is not None:  # it alone says which file it is, as of tempfile
            path = regular(raw.fileno())
        raw.happens = partial(self._happens, path=path) if path is not None else _of_no_interest
        raw.half_writes = HalfWrites(self._era)
        if buffering == 0:
            return raw
        try:
            wrap = io.BufferedRandom if "+" in mode else io.BufferedWriter
            size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
            buffer = wrap(raw, size)
            if binary:
                return buffer
            text = io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)
            text.mode = mode  # type: ignore[misc]
        except BaseException:
            raw.close()
            raise
        return text

    def _connected(self, connection: sqlite3.Connection, database: Any) -> None:
        """A connection was made, by ``sqlite3.connect`` or by a class of connections: its
        statements are watched where its file is the sink's."""
        path = database if isinstance(database, str | bytes) else os.fspath(database)
        if isinstance(path, str) and path.startswith("file:"):
            path = unquote(urlsplit(path).path)
        if path in (":memory:", ""):
            return
        self._note(path)
        if not self._concerns(path):
            return

        unsafe = ""

        def statement(sql: str) -> None:
            nonlocal unsafe
            first = verb(sql)
            if (mode := journal_mode(sql)) is not None:
                unsafe = mode
            changes = first in CHANGING_SQL or (first == PRAGMA and _SETS_NUMBER.search(sql))
            reads = first in READING_SQL or (first == PRAGMA and _READS_NUMBER.search(sql))
            alone = changes and not connection.in_transaction
            shown = " ".join(sql.split())[:_SHOWN]
            if first in (*_DURABLE_SQL, "BEGIN", BACKUP) or alone:
                self._happens(first.lower(), path, sql=shown, who=unsafe)
            elif reads and not connection.in_transaction:  # within one it has locked the others out
                self._looks(path, sql=shown)

        self._lines.seen_otherwise.update(whole(path) + more for more in _BESIDE_SQLITE)
        ask(connection, statement)

    def _asking_before(self, call: Callable[..., Any], at: int) -> Callable[..., Any]:
        """A call of the operating system's that writes to the file whose number it is given at this
        place: of these Python tells nobody."""

        def asked(*arguments: Any, **named: Any) -> Any:
            number = arguments[at] if len(arguments) > at else None
            if isinstance(number, int) and (path := regular(number)) is not None:
                asks = partial(self._happens, path=path)
                if call is _WRITE and len(arguments) == 2:
                    return self._half_writes.write(asks, partial(call, number), arguments[1])
                whole = partial(call, *arguments, **named)
                return HalfWrites(self._era).write(asks, lambda _: whole(), b"")
            return call(*arguments, **named)

        return asked

    def _looking_before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call of the operating system's that asks whether a file is there: of these Python tells
        nobody."""

        def looked(path: Any, *arguments: Any, **named: Any) -> Any:
            self._looks(path)
            return call(path, *arguments, **named)

        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if call in able:
                able.add(looked)
        return looked

    def _watch_duckdb(self, module: Any) -> None:
        """Ask before a database is opened to be written: what a driver has seen before may no
        longer hold then, and it has locked nothing yet."""
        connect = module.connect

        def asked(database: Any = ":memory:", read_only: bool = False, **named: Any) -> Any:
            if is_file(database) and not read_only:
                self._happens("connect", database)
            return connect(database, read_only, **named)

        module.connect = asked

    def _concerns(self, path: Any) -> bool:
        folder = self._aimed_at()
        if folder is None:
            return False
        return whole(path).startswith(folder) or (
            self._elsewhere and self._is_elsewhere(path) is not None
        )

    def _aimed_at(self) -> str | None:
        """The folder whose changes are asked for, with a slash; None where there is none, or in
        the midst of asking."""
        if getattr(self._busy, "now", False):
            return None
        self._busy.now = True
        try:
            self._refresh()
        finally:
            self._busy.now = False
        return self._folder

    def _era(self) -> object:
        """Another one for each driver of each run."""
        self._aimed_at()
        return self._known

    def _refresh(self) -> None:
        try:
            found = self._file.stat()
        except OSError:
            self._folder = None
            return
        version = (found.st_mtime_ns, found.st_ino)
        if version == self._known:
            return
        self._known = version
        with open(self._file, encoding="utf-8") as file:  # noqa: PTH123 - it may be within a hook
            value: Mapping[str, Any] = json.load(file)
        self._folder, self._elsewhere = value["folder"], value["elsewhere"]
        self._lines.asked = self._tasks.asked = frozenset(value["lines"])
        self._ran.to(value["ran"])
        clock_ahead.set_ahead(value["ahead_s"])
        instrumentation = Instrumentation(**value["instrumentation"])
        self._node, self._incarnation = instrumentation.node, instrumentation.incarnation
        self._recorder = instrumentation.recorder()

    def _changed(self, path: str, who: str, by: Line | None) -> None:
        self._happens(CHANGED, path, who=who, line=by)

    def _line_begins(self, path: str, line: Line) -> None:
        self._happens(LINE, path, line=line)

    def _happens(
        self, operation: str, path: Any, sql: str = "", who: str = "", line: Line | None = None
    ) -> None:
        """Ask the conductor; raises what it answers, in the midst of the sink's own call.
        ``sql``: the statement, if it is one; ``who``: has worked beside the batch's thread, or does
        what may be done in part; ``line``: the one that begins, or has made the change."""
        concerns = self._concerns(path)
        self._note(path)
        if not concerns or self._recorder is None or self._folder is None:
            return
        if operation not in _ASIDE:
            self._tasks.told()
        detail: dict[str, Any] = {
            "op": operation,
            "path": whole(path).removeprefix(self._folder),
        }
        if sql:
            detail["sql"] = sql
        if line is not None:
            detail[LINE] = line
        if not who and (thread := self._tasks.elsewhere() or self._lines.elsewhere()):
            who = f"{thread} did {operation} {detail['path']}"
        if who:
            detail[CONCURRENT] = who
        elif not (self._lines.in_batch or self._tasks.at_work):
            detail[OUTSIDE] = True
        if operation not in _ASIDE:
            self._lines.told()
        self._busy.now = True
        try:
            self._recorder.notify(
                TraceEvent(
                    f"{_task()}{head(who)}{STEP}",
                    "before",
                    self._node,
                    self._incarnation,
                    detail=detail,
                )
            )
        finally:
            self._busy.now = False

    def _is_elsewhere(self, path: Any) -> str | None:
        """The whole path of a file that is neither in the run's folder nor one that the host or
        Python itself changes."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        full = whole(path)
        nobodys = (f"{self._file.parent}/", *_NOBODYS)
        # With a slash: temporary files are opened by the name of their folder.
        if f"{full}/".startswith((self._folder, *nobodys) if self._folder else nobodys):
            return None
        return None if "/__pycache__/" in full else full

    def _note(self, path: Any) -> None:
        if getattr(self._busy, "now", False):
            return
        full = self._is_elsewhere(path)
        if full is not None:
            self._write_note(self._file.with_name(NOTES), full)

    def _note_turns(self) -> None:
        self._write_note(self._file.with_name(NOTED_TURNS), "in turn")

    def _write_note(self, notes: Path, note: str) -> None:
        self._busy.now = True
        try:
            with notes.open("a", encoding="utf-8") as file:
                file.write(f"{note}\n")
        except OSError:  # the host is being put away
            pass
        finally:
            self._busy.now = False


def _put_in_place(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Wrap a function of ``os``. What a user's code has imported of it is sent to Python workers by
    its name, as that of ``os`` is."""
    wrapped = wrap(getattr(os, name))
    wrapped.__module__, wrapped.__name__, wrapped.__qualname__ = "os", name, name
    setattr(os, name, wrapped)


def _of_no_interest(operation: str) -> None:
    """What becomes of a file that has no name is gone with the process."""


def _task() -> str:
    """The task attempt that this process works on, as the head of a step; empty outside of one."""
    module = sys.modules.get("pyspark.taskcontext")
    context = module.TaskContext.get() if module is not None else None
    if context is None:
        return ""
    beside = context.getLocalProperty(PROPERTY) or ""
    return f"{head(beside)}p={context.partitionId()}/a={context.attemptNumber()}/"


def install() -> None:
    """Install the probe in this process; an audit hook cannot be taken away."""
    Probe(str(aim_file())).install()
