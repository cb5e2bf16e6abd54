"""The sender's own note of what it was told is safe: JSON lines, the last whole one counts."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bettong.lineage.errors import UsageError


class AckedFile:
    """``{"stream": "lines", "acked": 18, "ended": false}``: messages 0 to 17 are safe.

    Attributes:
        upto: messages below it are safe.
        ended: the end of the stream is safe too.
    """

    def __init__(self, path: Path | None, stream: str) -> None:
        self.upto = 0
        self.ended = False
        self._stream = stream
        self._fd: int | None = None
        if path is not None:
            try:
                if path.exists():
                    self.upto, self.ended = read_acked(path, stream)
                self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                os.write(self._fd, b"\n")  # ends a line that a crash has torn
            except OSError as e:
                raise UsageError(f"cannot use {path}: {e.strerror}") from e

    def note(self, upto: int, ended: bool) -> None:
        """Note that messages below ``upto`` are safe."""
        self.upto, self.ended = upto, ended
        if self._fd is not None:
            line = json.dumps({"stream": self._stream, "acked": upto, "ended": ended})
            os.write(self._fd, line.encode() + b"\n")


def read_acked(path: Path, stream: str) -> tuple[int, bool]:
    """How many messages of the stream are noted as safe, and whether its end is.

    Raises UsageError for a file of something else.
    """
    upto, ended = 0, False
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n") or line == b"\n":
                continue
            try:
                value = json.loads(line)
                named, upto, ended = value["stream"], int(value["acked"]), bool(value["ended"])
            except (ValueError, TypeError, KeyError):
                continue  # torn by a crash, and ended by the next incarnation
            if named != stream:
                raise UsageError(f"{path}:{number} is about stream {named!r}, not {stream!r}")
    return upto, ended
