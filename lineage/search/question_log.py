"""What is known about one question, in a file of JSON lines that survives a kill."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from bettong.lineage.errors import UsageError

FORMAT = 4
ANSWERED = {"end": True}
"""The last value of a question that is answered."""


class QuestionLog:
    """Values that are added one by one, each on disk when :meth:`add` returns.

    The line that a kill has cut short is dropped when the file is opened again. The checksum of
    each line is also that of all before it, so that none can be missing, twice or elsewhere.

    Args:
        path: made, with its folders, where there is none.
        question: what the values belong to.
        system: what the question is asked of, such as a digest of its code: the file begins anew
            when it is another one.
        take: is given each value that is there already, and says whether they are of use so far;
            if not, the file begins anew. LookupError, TypeError and ValueError of it mean that the
            line is none of such a log.

    A file whose question is answered begins anew, whatever the next question is. Raises UsageError
    when the file belongs to another question that is not, or cannot be read.
    """

    def __init__(
        self,
        path: Path,
        question: str,
        take: Callable[[dict[str, Any]], bool],
        system: str = "",
    ) -> None:
        self._checksum = 0
        self._system = system
        end = self._read(path, question, take) if path.exists() else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("r+b" if path.exists() else "wb")
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._checksum = 0
            asked_of = {"system": system} if system else {}
            self.add({"format": FORMAT, "question": question, **asked_of})

    def _read(self, path: Path, question: str, take: Callable[[dict[str, Any]], bool]) -> int:
        end = 0
        other: UsageError | None = None
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    value = self._checked(json.loads(line))
                    if number == 1:
                        if value["format"] != FORMAT or value["question"] != question:
                            other = UsageError(
                                f"{path} is the log of another question "
                                f"({value['question']}): remove it or choose another directory"
                            )
                        elif value.get("system", "") != self._system:
                            return 0
                    elif value == ANSWERED if other else not take(value):
                        return 0
                except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as e:
                    what = UsageError(f"{path}:{number}: not a line of a search log: {e}")
                    raise (other or what) from e
                end += len(line)
        if other is not None:
            raise other
        return end

    def add(self, value: dict[str, Any]) -> None:
        """Keep a value."""
        line = _line(value)
        checksum = zlib.crc32(line, self._checksum)
        self._file.write(b'%s,"crc":%d}\n' % (line.removesuffix(b"}"), checksum))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._checksum = checksum

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _checked(self, value: dict[str, Any]) -> dict[str, Any]:
        """The value without its checksum; raises ValueError when it is not the one written."""
        stored = value.pop("crc", None)
        self._checksum = zlib.crc32(_line(value), self._checksum)
        if stored != self._checksum:
            raise ValueError("its checksum is wrong: remove the file, and the search begins anew")
        return value


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
