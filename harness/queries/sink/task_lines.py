"""The lines of the user's code in a Python worker, each of which is a place to look at files.

Only where nothing else writes meanwhile: a task that hands its rows on, as a UDF does, is at work
at the same time as whoever in the JVM takes them. That one does not write to the task's memory:
where this is a file the lines are places to look at it in any task.
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
_KIND = "eval_type"
_OF_RDDS, _OF_ARROW = 0, 207
"""What a task of ``foreachPartition`` or ``foreach`` is for a worker, and that of a data source,
which any other function of Arrow's is as well."""
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
        self.on = self.traced = False

    def begins(self) -> None:
        """The user's code is about to begin, if it is one whose lines are asked for."""
        kind, self._home = _kind(), ""
        self.on, self.traced = kind is True, kind is not None
        if self.traced:
            self._trace()

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
        self.on = self.on or frame.f_code.co_filename.endswith(_WRITES)
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
            self._runs(frame)
        return self._before_line


def _kind() -> bool | None:
    """Whether this is work whose lines are asked for: True, or False where only that of a data
    source is, which its first frame tells; None where it is neither."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_COMMITS):
            return True
        if file.endswith(_WORKER) and _KIND in frame.f_locals:
            kind = frame.f_locals[_KIND]
            return True if kind == _OF_RDDS else False if kind == _OF_ARROW else None
        frame = frame.f_back
    return None
