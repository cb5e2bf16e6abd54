"""The oracle: what should be visible, worked out by the sequential interpreter from what the
gateway accepted and what the senders were told is safe.

Where an application has several sinks, the id and the key of an output end in ``@SINK``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bettong.engine import Application
from bettong.engine.interpreter import Interpretation
from bettong.engine.keys import key_text
from bettong.engine.state.planned import PlannedBatch
from bettong.harness.checkers import Record
from bettong.lineage.errors import BettongError


class OracleError(BettongError):
    """What should be visible cannot be worked out."""


def expected_outputs(application: Application, found: Interpretation) -> list[Record]:
    """Every output, once, in the order in which a reader should see those of a key.

    Args:
        found: what the interpreter makes of the messages, given for each micro-batch how far each
            stream was read.
    """
    several = len(application.sinks) > 1
    return [
        _record(o.id, key_text(o.key), _as_in_a_row(o.data), None, o.sink if several else "")
        for o in found.outputs
    ]


def by_number(messages: Mapping[str, Sequence[bytes]], batch: int) -> Sequence[Mapping[str, int]]:
    """The boundaries of batches by number alone.

    Args:
        batch: how many messages of each stream make a micro-batch.
    """
    longest = max(map(len, messages.values()))
    return [
        {stream: min(end, len(sent)) for stream, sent in messages.items()}
        for end in range(batch, longest + batch, batch)
    ]


def as_noted(
    messages: Mapping[str, Sequence[bytes]], notes: Sequence[PlannedBatch]
) -> Sequence[Mapping[str, int]]:
    """The boundaries of batches as the engine has noted them before it read any. They decide in
    which order streams meet, and nothing else: every accepted message is expected once, whatever
    was noted; of one stream alone the notes change nothing. A note that does not name a stream, as
    there was none of it yet, takes nothing of it.

    Raises:
        OracleError: the notes do not follow on each other, so that they tell no order.
    """
    whole = {stream: len(sent) for stream, sent in messages.items()}
    if len(messages) == 1:
        return [whole]
    ends = dict.fromkeys(messages, 0)
    boundaries = []
    for number, planned in enumerate(notes):
        if planned.batch != number or {**ends, **planned.starts} != ends:
            raise OracleError(
                f"the note of batch {planned.batch} begins at {dict(planned.starts)} where {ends} "
                "was left: the streams' order is not known"
            )
        ends = {**ends, **planned.ends}
        boundaries.append({s: min(end, whole[s]) for s, end in ends.items()})
    return [*boundaries, whole]


def as_told(expected: Sequence[Record], rows: Mapping[str, Any]) -> list[Record]:
    """The outputs with the ids and contents that are told, in the order and with the keys of those
    that were worked out."""
    known = {str(record.id) for record in expected}
    more = (Record(id, None, value) for id, value in rows.items() if id not in known)
    return [
        *(replace(r, value=rows[str(r.id)]) for r in expected if str(r.id) in rows),
        *more,
    ]


def seen_outputs(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Record]:
    """The rows that a reader sees at each sink, in their order."""
    return [
        _record(
            row.get("id"),
            row.get("key"),
            _content(row),
            row.get("batch"),
            sink if len(rows) > 1 else "",
        )
        for sink, found in rows.items()
        for row in found
    ]


def _content(row: Mapping[str, Any]) -> Any:
    """What a reader makes of a row: text, or bytes that are none. That the right letters stand
    there as the other of the two is not the right content."""
    if "base64" not in row:
        return row.get("data")
    return {name: row[name] for name in ("data", "base64") if name in row}


def _record(id: Any, key: Any, value: Any, batch: Any, sink: str) -> Record:
    if not sink:
        return Record(id, key, value, batch)
    # A key that is no text stays what it is: it must not become the text that was expected.
    return Record(f"{id}@{sink}", f"{key}@{sink}" if isinstance(key, str) else key, value, batch)


def _as_in_a_row(data: bytes) -> Any:
    """An output as a row of the receiver holds it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
