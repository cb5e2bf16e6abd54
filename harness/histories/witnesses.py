"""From places to anomalies: the records of the witnesses, read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bettong.harness.checkers.levels import Order
from bettong.harness.checkers.outputs import in_batches, loss_note
from bettong.harness.checkers.records import MALFORMED_SHOWN
from bettong.harness.histories.columns import Columns, Row, hash_ids, message_id
from bettong.harness.histories.hashing import U64
from bettong.harness.histories.match import SHOWN_PLACES, Findings, Matcher, Witness
from bettong.harness.histories.readers import StoredHistory
from bettong.lineage.results import Anomaly


def named_rows(history: StoredHistory, columns: Columns, words: U64) -> list[str]:
    """What is wrong with records whose ids' hashes are these and which share an id."""
    first_at: dict[int, int] = {}
    reported: list[str] = []
    start = 0
    for batch in history.batches(list(columns.id)):
        hashes = hash_ids(batch, columns.id)
        at = np.flatnonzero(np.isin(hashes, words))
        for place, row in zip(at, batch.take(pa.array(at)).to_pylist(), strict=True):
            word, number = int(hashes[place]), start + int(place) + 1
            if word in first_at:
                reported.append(
                    f"expected record {number} has the id {message_id(row, columns)}, as record "
                    f"{first_at[word]} has: which of them was expected cannot be known"
                )
            first_at.setdefault(word, number)
            if len(reported) == MALFORMED_SHOWN:
                return reported
        start += batch.num_rows
    return reported


def anomalies_of(
    findings: Findings,
    matcher: Matcher,
    expected: StoredHistory,
    observed: StoredHistory,
    columns: Columns,
    ordering: Order,
) -> list[Anomaly]:
    """Anomalies with ids, keys and contents, by kind and place."""
    witnesses = [w for found in findings.witnesses.values() for w in found]
    want = sorted({place for w in witnesses for place in w.expected})
    shown = None if columns.batch else 1
    seen = sorted({place for w in witnesses for place in w.observed[:shown]})
    names = columns.of(None)
    right = dict(zip(want, expected.rows_at(names, want), strict=True))
    wrong = dict(zip(seen, observed.rows_at(columns.of(columns.batch), seen), strict=True))
    notify = _Teller(columns, right, wrong, matcher, ordering)
    return [notify.anomaly(w) for w in witnesses]


class _Teller:
    def __init__(
        self,
        columns: Columns,
        right: dict[int, Row],
        wrong: dict[int, Row],
        matcher: Matcher,
        ordering: Order,
    ) -> None:
        self.columns, self.right, self.wrong = columns, right, wrong
        self.first, self.last = matcher.seen_first, matcher.seen_last
        self.seen = matcher.seen()
        self.per_key = ordering == "per-key"

    def anomaly(self, w: Witness) -> Anomaly:
        rows = [self.right[place] for place in w.expected]
        row = rows[0] if rows else self.wrong[w.observed[0]]
        ids = tuple(message_id(r, self.columns) for r in rows or [row])
        key = self._key(row)
        match w.kind:
            case "Loss":
                return Anomaly("Loss", ids, key, self._value(row), None, self._loss(w, key))
            case "Duplicate":
                near = w.observed[-1] - w.observed[0] == w.times - 1
                seen = {"times": w.times, "places": list(w.observed[:SHOWN_PLACES])}
                how = "adjacent" if near else "distant"
                return Anomaly("Duplicate", ids, key, {"times": 1}, seen, how + self._batches(w))
            case "Phantom":
                note = f"seen {w.times} times" if w.times > 1 else None
                return Anomaly("Phantom", ids, key, None, self._value(row), note)
            case "Reorder":
                keys = {self._key(r) for r in rows}
                return Anomaly(
                    "Reorder",
                    ids,
                    key if len(keys) == 1 else None,
                    list(ids),
                    list(reversed(ids)),
                    f"at places {w.observed[0]} and {w.observed[1]}{self._batches(w)}",
                )
            case _:
                return self._corrupt(w, ids, key, row)

    def _batches(self, w: Witness) -> str:
        name = self.columns.batch
        return "" if name is None else in_batches([self.wrong[at][name] for at in w.observed])

    def _corrupt(self, w: Witness, ids: tuple[str, ...], key: str | None, row: Row) -> Anomaly:
        seen = self.wrong[w.observed[0]]
        place = w.observed[0]
        if self._key(seen) != key:
            return Anomaly(
                "Corrupt",
                ids,
                key,
                {"key": key, "value": self._value(row)},
                {"key": self._key(seen), "value": self._value(seen)},
                f"the key differs, at place {place}",
            )
        note = f"the content differs, at place {place}"
        return Anomaly("Corrupt", ids, key, self._value(row), self._value(seen), note)

    def _key(self, row: Row) -> str | None:
        value = row[self.columns.key] if self.columns.key else None
        return None if value is None else str(value)

    def _value(self, row: Row) -> Any:
        values = {name: _json(row[name]) for name in self.columns.compare}
        return next(iter(values.values())) if len(values) == 1 else values or None

    def _loss(self, w: Witness, key: str | None) -> str:
        of_key = None
        if self.per_key and key is not None:
            of_key = _part(w.rank, int(self.first[w.group]), int(self.last[w.group]))
        return loss_note(_part(w.rank, *self.seen), of_key)


def _part(rank: int, first: int, last: int) -> str:
    if first > last:
        return "whole"
    return "prefix" if rank < first else "tail" if rank > last else "middle"


def _json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(name): _json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else str(value)
