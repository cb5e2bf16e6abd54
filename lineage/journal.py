"""The log of a search: every execution, as soon as it is judged.

A search that was killed goes on where it stopped: it is deterministic, so that it asks for the
same schedules again, and those that the log holds are answered from it. Two things are never
answered from a log: a run that told nothing, and a question whose search came to its end, for the
system may have been changed since.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

from bettong.lineage.errors import UsageError
from bettong.lineage.executor import Execution
from bettong.lineage.export import from_json, to_json
from bettong.lineage.faults import Schedule
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Anomaly

FORMAT = 1
_END = {"end": True}


class Journal:
    """Executions of one question, kept in a file of JSON lines.

    Attributes:
        resumed: how many executions are known from the interrupted search.

    Raises UsageError when the file belongs to another question or cannot be read.
    """

    def __init__(self, path: Path, question: str) -> None:
        self._known: dict[Schedule, Execution] = {}
        end = self._read(path, question) if path.exists() else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("r+b" if path.exists() else "wb")
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._write({"format": FORMAT, "question": question})
        self.resumed = len(self._known)

    def _read(self, path: Path, question: str) -> int:
        end = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    value = json.loads(line)
                    if number == 1:
                        if value["format"] != FORMAT or value["question"] != question:
                            raise UsageError(
                                f"{path} is the log of another question "
                                f"({value['question']}): remove it or choose another directory"
                            )
                    elif value == _END:
                        self._known.clear()
                        return 0
                    else:
                        execution = _execution(value)
                        if not execution.blind:
                            self._known[execution.schedule] = execution
                except (KeyError, TypeError, ValueError) as e:
                    raise UsageError(f"{path}:{number}: not a line of a search log: {e}") from e
                end += len(line)
        return end

    def get(self, schedule: Schedule) -> Execution | None:
        """The execution of a schedule, when it is known."""
        return self._known.get(schedule)

    def add(self, execution: Execution) -> None:
        """Keep an execution; it is on disk when this returns."""
        self._known[execution.schedule] = execution
        value = {f.name: getattr(execution, f.name) for f in fields(execution)} | {
            "schedule": sorted(execution.schedule),
            "anomalies": [asdict(a) for a in execution.anomalies],
            "evidence": dict(execution.evidence),
            "details": dict(execution.details),
            "lineage": _packed(execution.lineage),
        }
        self._write(value)

    def _write(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def end(self) -> None:
        """The question is answered: the next search begins anew."""
        self._write(_END)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _packed(lineage: Lineage) -> str:
    text = json.dumps(to_json(lineage), separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def _unpacked(text: str) -> Lineage:
    try:
        packed = zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as e:
        raise ValueError(str(e)) from e
    return from_json(json.loads(packed))


def _execution(value: dict[str, Any]) -> Execution:
    anomalies = [Anomaly(**{**a, "messages": tuple(a["messages"])}) for a in value["anomalies"]]
    return Execution(
        **{
            **value,
            "schedule": frozenset(value["schedule"]),
            "lineage": _unpacked(value["lineage"]),
            "anomalies": tuple(anomalies),
            "not_fired": tuple(value["not_fired"]),
        }
    )
