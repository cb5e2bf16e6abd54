"""The log of a search: every execution, as soon as it is judged.

A search that was killed goes on where it stopped: it is deterministic, so that it asks for the
same schedules again, and those that the log holds are answered from it. Three things are never
answered from a log: a run that showed nothing, a question whose search came to its end, for the
system may have been changed since, and one about a system that is seen to have been.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.results import Anomaly
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.lineage_table import LineageTable
from bettong.lineage.search.question_log import ANSWERED, QuestionLog


class Journal:
    """Executions of one question, kept in a file of JSON lines.

    Attributes:
        resumed: how many executions are known from the interrupted search.

    Raises UsageError when the file belongs to another question that is not answered, or cannot be
    read.
    """

    def __init__(self, path: Path, question: str, system: str = "") -> None:
        self._known: dict[FaultSet, Execution] = {}
        self._table = LineageTable()
        self._log = QuestionLog(path, question, self._take, system)
        self.resumed = len(self._known)

    def _take(self, value: dict[str, Any]) -> bool:
        if value == ANSWERED:
            self._known.clear()
            self._table = LineageTable()
            return False
        lineage = self._table.read(_unpacked(value["lineage"]))
        execution = _execution(value, lineage)
        if not execution.blind:
            self._known[execution.schedule] = execution
        return True

    def get(self, schedule: FaultSet) -> Execution | None:
        """The execution of a schedule in the interrupted search, if there was one; asked once."""
        return self._known.pop(schedule, None)

    def on_event(self, event: SearchEvent) -> None:
        """Keep a fresh execution; it is on disk when this returns."""
        if not isinstance(event, Executed) or event.from_log:
            return
        execution = event.execution
        value = {f.name: getattr(execution, f.name) for f in fields(execution)} | {
            "schedule": sorted(execution.schedule),
            "anomalies": [asdict(a) for a in execution.anomalies],
            "evidence": dict(execution.evidence),
            "details": dict(execution.details),
            "lineage": _packed(self._table.write(execution.lineage)),
        }
        self._log.add(value)

    def end(self) -> None:
        """The question is answered: the next search begins anew."""
        self._log.add(ANSWERED)

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def _execution(value: dict[str, Any], lineage: Lineage) -> Execution:
    anomalies = [Anomaly(**{**a, "messages": tuple(a["messages"])}) for a in value["anomalies"]]
    return Execution(
        **{
            **value,
            "schedule": frozenset(value["schedule"]),
            "lineage": lineage,
            "anomalies": tuple(anomalies),
            "not_fired": tuple(value["not_fired"]),
        }
    )


def _packed(value: dict[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def _unpacked(text: str) -> Any:
    try:
        return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as e:
        raise ValueError(str(e)) from e
