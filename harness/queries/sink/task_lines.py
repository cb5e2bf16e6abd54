"""The lines of the user's code in a Python worker, each of which is a place to look at files.

A UDF hands its rows on, and whoever in the JVM takes them is at work at the same time: what Spark
itself writes is known by its name and left out. Where a data source is read there is nothing to
look at, unless the task's memory is a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from bettong.harness.queries.sink.users_code import is_users

_WORKER = "/pyspark/worker.py"
_COMMITS = "/pyspark/sql/worker/python_streaming_sink_runner.py"
_WRITES = "/pyspark/sql/worker/write_into_data_source.py"
_READS = "/pyspark/sql/worker/plan_data_source_read.py"
_KIND = "eval_type"
_OF_ARROW, _READER, _COMMIT = 207, -1, -2
"""What a task of ``mapInArrow`` is for a worker, which one that writes or reads a data source is as
well, as its first frame tells."""
_OF_VALUES = frozenset((100, 101, 200, 202, 203, 204, 217, *range(250, 255)))
"""UDFs of columns: they are there for what they return."""
_GIVE_ROWS = ("pyarrow.", "pandas.", "numpy.")
_INSTALLED = "site-packages"


class TaskLines:
    """Calls before each line of the user's code, and of what stands beside it.

    Args:
        line: is given its number.
        runs: is given its frame, when nothing more comes before it.

    Attributes:
        on: whether the lines of what is under way are places to look at the folder of the run.
        traced: whether they may be.
    """

    def __init__(self, line: Callable[[int], None], runs: Callable[[FrameType], None]) -> None:
        self._line = line
        self._runs = runs
        self._home = ""
        self._before: Any = None
        self._of_memory = False
        self._kind: int | None = None
        self.on = self.traced = False

    def begins(self) -> None:
        """The user's code is about to begin, if it is one whose lines are asked for."""
        self._kind, self._home = _kind(), ""
        self.traced = self._kind is not None
        self.on = self.traced and self._kind != _OF_ARROW
        if self.traced:
            self._trace()

    @property
    def commits(self) -> bool:
        """Whether what is under way is the commit of a data source, which no task does."""
        return self.traced and self._kind == _COMMIT

    def memory_is_a_file(self) -> None:
        """From the next line on each is asked for, in what is under way as well."""
        self._of_memory = True
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_trace is None:
                frame.f_trace = self._traced(frame)
            frame = frame.f_back
        if not self.traced:
            self.traced = True
            self._trace()

    def _trace(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._entered)

    def ends(self) -> None:
        """The user's code has ended."""
        if self.traced:
            sys.settrace(self._before)
        self.on = self.traced = self._of_memory = False

    def _entered(self, frame: FrameType, _event: str, _: Any) -> Any:
        if self._kind == _OF_ARROW and not self.on:
            file = frame.f_code.co_filename
            if file.endswith(_READS):
                self._kind = _READER
            else:
                self.on = file.endswith(_WRITES) or is_users(frame)
        return self._traced(frame) if self.on or self._of_memory else None

    def _traced(self, frame: FrameType) -> Any:
        file = frame.f_code.co_filename
        if not is_users(frame):
            return None
        if not self._home:
            if str(frame.f_globals.get("__name__", "")).startswith(_GIVE_ROWS):
                return None
            self._home = f"{Path(file).parent}/"
        beside = file.startswith(self._home) and _INSTALLED not in file[len(self._home) :]
        return self._before_line if beside else None

    def _before_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._line(frame.f_lineno)
            if self._kind not in _OF_VALUES:
                self._runs(frame)
        return self._before_line


def _kind() -> int | None:
    """What the worker's task is; None where it is none, nor the commit of a data source."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_COMMITS):
            return _COMMIT
        if file.endswith(_WORKER) and _KIND in frame.f_locals:
            kind: int = frame.f_locals[_KIND]
            return kind
        frame = frame.f_back
    return None
