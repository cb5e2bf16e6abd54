"""In a driver host: why a query has failed, in words."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from bettong.harness.queries.raised import DIED_UNHEARD

_CHARS = 50_000
"""Of an error in words: what was raised first stands below the tracebacks of two Pythons."""
_LOG_BYTES = 1 << 18
_STDERR = Path("/proc/self/fd/2")
_PATIENCE_S = 2.0
_POLL_S = 0.05


class Failures:
    """Puts into words why a query has failed that is started after this is made.

    What a Python worker says as it dies is in the host's log alone, to which the JVM passes it on.
    """

    def __init__(self) -> None:
        self._begin = _log_size()

    def in_words(self, error: Exception) -> str:
        """Its kind, all that it says, and what it came of in the JVM and its workers; but for what
        nobody would read."""
        words = f"{type(error).__name__}: {error}"
        inner = getattr(error, "_cause", None)  # pyspark has it there alone
        if inner is not None:
            words += f"\n{getattr(inner, '_stackTrace', None) or inner}"
        if DIED_UNHEARD in words and "Traceback (most" not in words:
            words += f"\n{self._log_that_says_why()}"
        half = _CHARS // 2
        return words if len(words) <= _CHARS else f"{words[:half]}\n...\n{words[-half:]}"

    def _log_that_says_why(self) -> str:
        """What the log has of the query, once it tells of an exception or has had time to."""
        until = time.monotonic() + _PATIENCE_S
        while self._begin is not None:
            with _STDERR.open("rb") as log:
                log.seek(self._begin)
                text = log.read()[-_LOG_BYTES:].decode("utf-8", "replace")
            if "Traceback (most" in text or time.monotonic() > until:
                return text
            time.sleep(_POLL_S)
        return ""


def _log_size() -> int | None:
    """None where standard error is no file."""
    found = os.fstat(2)
    return found.st_size if stat.S_ISREG(found.st_mode) else None
