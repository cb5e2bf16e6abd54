"""A moment before each line of a ``foreachBatch`` function that comes after a change: native
libraries (DuckDB, Arrow, Delta's own) and ``mmap`` write past Python's ``open``.

What changed below a folder the kernel tells, so that between two lines that write there is a
moment however they do it.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from bettong.harness.queries.sink.concurrent import (
    STILL_AT_WORK,
    Beside,
    Marks,
    elsewhere,
    is_sparks,
    named,
)
from bettong.harness.queries.sink.folder_watch import FolderWatch
from bettong.harness.queries.sink.lines import Line, LinesBegun
from bettong.harness.queries.sink.mapped_files import MappedFiles
from bettong.harness.queries.sink.processes import LeftAtWork
from bettong.harness.queries.sink.turns import Turns
from bettong.harness.queries.sink.users_code import is_users


class LineMoments:
    """Asks before each line of the user's code that comes after a change, and before the lines that
    it was told to ask at.

    Args:
        folder: gives the folder of the run, None where there is none.
        happens: is given the path that was changed; who has worked beside the batch's thread
            meanwhile, if anybody did; and the line that has changed it, if nothing else has told
            of that.
        begins: is given a path of the run, and a line that is about to begin.
        runs: is given the frame of each line, when nothing more comes before it.
        in_turn: called when a batch has waited for all that it has given to threads.

    Attributes:
        asked: the numbers of the lines before which it asks, whatever has changed.
    """

    def __init__(
        self,
        folder: Callable[[], str | None],
        happens: Callable[[str, str, Line | None], None],
        begins: Callable[[str, Line], None],
        runs: Callable[[FrameType], None],
        in_turn: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._in_turn = in_turn
        self._happens = happens
        self._begins = begins
        self._runs = runs
        self.asked: Collection[int] = ()
        self._calls: dict[int, _Call] = {}
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._marks = Marks()
        self._left = LeftAtWork()
        self._in_spark = 0
        self._looking = False
        self._mapped = MappedFiles()
        self.seen_otherwise: set[str] = set()
        self.turns = Turns(
            lambda call, frame: is_users(frame) and call.is_beside(frame),
            self._acts,
            self._acts_no_more,
            lambda call, thread: call.beside.thread_starts(thread),
        )

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of ``foreachBatch``, with its lines and those of the code beside it
        watched."""

        def watched(*arguments: Any) -> Any:
            folder = self._folder()
            if folder is None:
                return function(*arguments)
            watch = FolderWatch(folder, self.seen_otherwise)
            call = _Call(folder, watch, Beside(self._left, folder))
            before = sys.gettrace()
            self._acts(call)
            self.turns.batch_begins(call, int(arguments[-1]))
            try:
                done = function(*arguments)
                self._returns(call)
                return done
            finally:
                self.turns.batch_ends()
                sys.settrace(before)
                self._calls.pop(threading.get_ident(), None)
                call.beside.processes.still_at_work()  # also where the function fails
                call.watch.close()

        return watched

    def _acts(self, call: _Call) -> None:
        """What this thread does from now on is done for a batch."""
        self._calls[threading.get_ident()] = call
        sys.settrace(partial(self._entered, call))

    def _acts_no_more(self, thread: int) -> None:
        self._calls.pop(thread, None)
        if thread == threading.get_ident():
            sys.settrace(None)

    def around(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """A call of Spark's, which changes files as Spark's own hooks see."""

        def asked(connection: Any, text: str) -> Any:
            if threading.get_ident() not in self._calls:
                return self._beside(command, connection, text)
            self._look()
            self._in_spark += 1
            try:
                return command(connection, text)
            finally:
                self._in_spark -= 1
                for call in self._own_calls():
                    call.beside.look_begins(())
                    changes = call.watch.changed()
                    call.who = call.beside.changed(changes.writes, ()) or call.who

        return asked

    def elsewhere(self) -> str:
        """Who works in this thread, if it is neither that of a batch nor the process's first one;
        empty if it is."""
        call = self._calls.get(threading.get_ident())
        return elsewhere(None if call is None else call.beside)

    def maps(self, path: str) -> None:
        """A file becomes memory, of whose changes the kernel tells nobody."""
        self._mapped.add(path)

    @property
    def in_batch(self) -> bool:
        """Whether this thread is in a batch's function."""
        return threading.get_ident() in self._calls

    def reads(self) -> bool:
        """Whether what this thread is about to read is read by a batch's function."""
        return self.in_batch and not self.elsewhere() and not self._looking

    def told(self) -> None:
        """This thread is about to change something, as was told."""
        call = self._calls.get(threading.get_ident())
        if call is not None:
            call.told = True
            if call.beside.pid == os.getpid():
                call.beside.processes.goes_on()

    def starting(self, start: Callable[..., None]) -> Callable[..., None]:
        """``threading.Thread.start``, which tells of those that the user's code starts."""

        def started(thread: threading.Thread) -> None:
            goes_in_turn = self.turns.starts(thread, start)
            if self._folder() is not None and not goes_in_turn and not is_sparks(thread):
                call = self._calls.get(threading.get_ident())
                if call is None:
                    self._threads.add(thread)
                else:
                    call.beside.thread_starts(thread)

        return started

    def process_starts(self, command: str) -> bool:
        """This process is about to start another one; whether it does so while a batch is in the
        user's function."""
        calls = self._own_calls()
        for call in calls:
            call.beside.processes.starts(command, threading.get_ident() not in self._calls)
        return bool(calls)

    def _beside(self, command: Callable[..., Any], connection: Any, text: str) -> Any:
        """A call of Spark's in a thread that is not a batch's."""
        thread = threading.current_thread()  # one of Spark's own is about to call the function
        who = "" if is_sparks(thread) or self._folder() is None else self.elsewhere()
        if not who:
            return command(connection, text)
        self._marks.before(text, who, partial(command, connection))
        try:
            return command(connection, text)
        finally:
            self._marks.after(text)

    def _returns(self, call: _Call) -> None:
        """The function has done its work: what others have done meanwhile, or are to do still, is
        told. Who has ended by the time that is asked has done what files show after it."""
        self._look()
        left = call.beside.left(call.home or "") or self._left_in_turn()
        self._look()
        who = call.who or left
        if who or call.by is not None:
            self._happens(call.change or call.any_file, who, call.by)

    def _left_in_turn(self) -> str:
        if (left := self.turns.left()) is None:
            if self.turns.given():
                self._in_turn()
            return ""
        thread, is_over = left
        who = named(thread) if thread is not None else "a thread that has not begun"
        return f"nobody waited for {who}" if is_over else f"{who} {STILL_AT_WORK}"

    def _own_calls(self) -> list[_Call]:
        """Those of this process, which may be a copy of the one that has them. Several threads may
        act for one of them."""
        own = {id(call): call for call in list(self._calls.values())}
        return [call for call in own.values() if call.beside.pid == os.getpid()]

    def _entered(self, call: _Call, frame: FrameType, _event: str, _: Any) -> Any:
        if not is_users(frame):
            return None
        call.home = call.home or f"{Path(frame.f_code.co_filename).parent}/"
        return partial(self._line, call) if call.is_beside(frame) else None

    def _line(self, call: _Call, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and self.in_batch:
            self._look()
            (change, call.change), (who, call.who) = (call.change, None), (call.who, "")
            by, call.by = call.by, None
            if change is not None or who:
                self._happens(change or call.any_file, who, by)
            line = call.lines.begins(frame.f_lineno)
            if frame.f_lineno in self.asked:
                self._begins(call.any_file, line)
            self._runs(frame)
        return partial(self._line, call)

    def _look(self) -> None:
        self._looking = True
        try:
            self._look_at_all()
        finally:
            self._looking = False

    def _look_at_all(self) -> None:
        for call in self._own_calls():
            call.beside.look_begins(self._threads)
            changes, mapped = call.watch.changed(), self._mapped.changed()
            told, call.told = call.told, False
            if not self._in_spark:
                call.change = mapped or changes.last or call.change
                known = told or changes.last is None
                if not told and (mapped or changes.last):
                    call.by = call.lines.last
                call.who = call.beside.changed(changes.writes, self._threads, known) or call.who


@dataclass
class _Call:
    """One batch in the user's function.

    Attributes:
        home: the folder of the user's code.
        change: what changed, and was no moment yet.
        who: works beside it, and was not told yet.
        told: whether its own thread has changed something, and told that, since files were looked
            at last.
        lines: that were begun.
        by: the line that has made the change.
    """

    folder: str
    watch: FolderWatch
    beside: Beside
    home: str | None = None
    change: str | None = None
    who: str = ""
    told: bool = False
    lines: LinesBegun = field(default_factory=LinesBegun)
    by: Line | None = None

    def is_beside(self, frame: FrameType) -> bool:
        """Whether a frame's code lies in the folder of the function or below, other than a library
        that is installed there."""
        file = frame.f_code.co_filename
        home = self.home or ""
        return file.startswith(home) and "site-packages" not in file[len(home) :]

    @property
    def any_file(self) -> str:
        """A path for what has changed nobody knows where."""
        return f"{self.folder}*"
