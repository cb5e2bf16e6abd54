"""The sender's own note of what it was told is safe: JSON lines, the last whole one counts."""

from __future__ import annotations

import json
from pathlib import Path

from bettong.engine.storage.disk import OS_DISK, AppendFile, Disk
from bettong.lineage.errors import BettongError, UsageError


class NoteError(BettongError):
    """What is safe could not be noted; whoever is started again asks the gateway."""


class AckedFile:
    """``{"stream": "lines", "acked": 18, "ended": false}``: messages 0 to 17 are safe.

    Attributes:
        upto: messages below it are safe.
        ended: the end of the stream is safe too.

    Nothing waits until a note is durable: one that is lost is made again from what the gateway
    says.

    Raises:
        UsageError: the file cannot be opened.
        NoteError: nothing can be written to it, as when the disk is full.
    """

    def __init__(self, path: Path | None, stream: str, disk: Disk = OS_DISK) -> None:
        self.upto = 0
        self.ended = False
        self._stream = stream
        self._file: AppendFile | None = None
        if path is not None:
            try:
                if path.exists():
                    self.upto, self.ended = read_acked(path, stream)
                self._file = disk.append_to(path)
            except OSError as e:
                raise UsageError(f"cannot use {path}: {e.strerror}") from e
            self._write(b"")  # ends a line that a crash has torn

    def note(self, upto: int, ended: bool) -> None:
        """Note that messages below ``upto`` are safe; raises NoteError."""
        self.upto, self.ended = upto, ended
        line = json.dumps({"stream": self._stream, "acked": upto, "ended": ended})
        self._write(line.encode())

    def _write(self, line: bytes) -> None:
        if self._file is not None:
            try:
                self._file.write(line + b"\n")
            except OSError as e:
                raise NoteError(f"what is safe cannot be noted: {e.strerror}") from e


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
