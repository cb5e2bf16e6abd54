"""What a run has left: what was accepted, and what a reader sees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bettong.engine import Application
from bettong.engine.endpoints import kept_as
from bettong.engine.ingest.acked import read_acked
from bettong.engine.ingest.journal import Journal
from bettong.engine.keys import key_text, parse
from bettong.engine.receiver import output as receiver
from bettong.engine.receiver.rows import Columns, Row
from bettong.engine.receiver.rows import lines as lines_of
from bettong.engine.sinks import arrow, files
from bettong.engine.state.planned import all_noted
from bettong.engine.state.store import LocalStore
from bettong.harness.backends.base import Backend
from bettong.harness.checkers import Record
from bettong.harness.checkers.oracle import as_noted, by_number, seen_outputs
from bettong.harness.checkers.rows import parse_rows
from bettong.harness.cluster.layout import Layout
from bettong.harness.scenario import Messages, Scenario
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly


@dataclass(frozen=True, slots=True)
class Observed:
    """What a reader sees at every sink.

    Attributes:
        records: what can be read, in the order of each sink.
        unreadable: an anomaly for each row that cannot.
    """

    records: list[Record]
    unreadable: tuple[Anomaly, ...]


def visible(
    application: Application, scenario: Scenario, layout: Layout, run: str, backend: Backend
) -> Observed:
    """Read every sink of a run."""
    rows: dict[str, Iterable[Mapping[str, Any]]] = {}
    unreadable: list[Anomaly] = []
    for sink in application.sinks:
        if scenario.outputs == "kafka":
            assert backend.broker is not None
            backend.broker.ensure()
            rows[sink.name] = backend.broker.rows(f"{run}.{sink.name}")
            continue
        if scenario.outputs == "receiver":
            lines = receiver.read_lines(layout.receiver / kept_as(application, sink.name))
        else:
            folder = layout.files / sink.name
            read = files.read_lines if scenario.outputs == "files" else _arrow_lines
            lines = read(folder) if folder.exists() else iter(())
        rows[sink.name] = parse_rows(lines, sink.name, unreadable)
    return Observed(seen_outputs(rows), tuple(unreadable))


def _arrow_lines(folder: Path) -> Iterator[bytes]:
    """The visible rows of Arrow files, as the lines that the other sinks write."""
    try:
        for batch, table in enumerate(arrow.read_batches(folder)):
            found = [
                Row(
                    row["id"],
                    None if row["key"] is None else key_text(parse(row["key"])),
                    row["data"],
                )
                for row in table.to_pylist()
            ]
            yield from bytes(lines_of(batch, Columns.of(found))).splitlines(keepends=True)
    except BettongError as e:
        raise ValueError(str(e)) from e


def accepted(scenario: Scenario, layout: Layout, messages: Messages) -> Messages:
    """The messages that count: those that the journal has, and those that the sender was told
    are safe, whether the journal has them or not."""
    if scenario.inputs != "gateway":
        return messages
    return {s: sent[: _accepted(layout, s, len(sent))] for s, sent in messages.items()}


def boundaries(
    scenario: Scenario, layout: Layout, messages: Messages
) -> Sequence[Mapping[str, int]]:
    """Where batches ended; those of a live scenario as they were noted.

    Raises:
        BettongError: the notes cannot be read, or do not follow on each other.
    """
    if not scenario.moments:
        return by_number(messages, scenario.batch)
    return as_noted(messages, all_noted(LocalStore(layout.checkpoint / "state")))


def _accepted(layout: Layout, stream: str, sent: int) -> int:
    acked = layout.acked(stream)
    upto = read_acked(acked, stream)[0] if acked.exists() else 0
    journal = layout.gateway / "streams" / stream
    if journal.exists():
        try:
            with contextlib.closing(Journal(journal, stream)) as opened:
                upto = max(upto, opened.end)
        except Exception:
            # Damaged, whichever way a gateway with a defect has done that: whatever it had, it
            # was given.
            return sent
    return min(upto, sent)
