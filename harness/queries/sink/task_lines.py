"""The lines of the user's code in a Python worker, each of which is a place to look at files.

Only where nothing else writes meanwhile: a task that hands its rows on, as a UDF does, is at work
at the same time as whoever in the JVM takes them.
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
        line: is called.

    Attributes:
        on: whether the lines of what is under way are asked for.
        traced: whether they may be.
    """

    def __init__(self, line: Callable[[], None]) -> None:
        self._line = line
        self._home = ""
        self._before: Any = None
        self.on = self.traced = False

    def begins(self) -> None:
        """The user's code is about to begin, if it is one whose lines are asked for."""
        kind, self._home = _kind(), ""
        self.on, self.traced = kind is True, kind is not None
        if self.traced:
            self._before = sys.gettrace()
            sys.settrace(self._entered)

    def ends(self) -> None:
        """The user's code has ended."""
        if self.traced:
            sys.settrace(self._before)
        self.on = self.traced = False

    def _entered(self, frame: FrameType, _event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not self.on:
            self.on = file.endswith(_WRITES)
            return None
        if not is_users(frame):
            return None
        if not self._home:
            if str(frame.f_globals.get("__name__", "")).startswith(_GIVE_ROWS):
                return None
            self._home = f"{Path(file).parent}/"
        beside = file.startswith(self._home) and _INSTALLED not in file[len(self._home) :]
        return self._before_line if beside else None

    def _before_line(self, _frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._line()
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
