"""Checks two stored histories of any size: digests first, then only the groups that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bettong.harness.checkers.levels import Judgement, Order, judge, undecided
from bettong.harness.events import Handler, RecordsRead, ignore
from bettong.harness.histories.columns import Columns, Ranks, hash_ids
from bettong.harness.histories.digest import (
    I64,
    SLICES,
    Digests,
    KeyCodes,
    id_slices,
    record_hashes,
)
from bettong.harness.histories.hashing import U64, first_without_id
from bettong.harness.histories.malformed import MalformedHistoryError
from bettong.harness.histories.match import (
    BUCKETS,
    FIRST,
    NOTHING,
    ROW,
    Findings,
    Matcher,
    find_reorders,
    row_buckets,
)
from bettong.harness.histories.readers import StoredHistory
from bettong.harness.histories.spill import Buckets, Log, Rows, repeated
from bettong.harness.histories.witnesses import anomalies_of, named_rows
from bettong.harness.processes.folders import temporary_folder
from bettong.lineage.results import Anomaly, AnomalyKind, Guarantee

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class StoredCheck:
    """One comparison of an expected with an observed history.

    Attributes:
        ordering: which order has to hold. With ``per-key``, records without a key have none.
        witnesses: how many anomalies of each kind are reported; all are counted.
        memory: bytes that rows may take before they go to files.
        spill: directory for these files, or None for the system's.
        on_event: given how far the histories have been read.
    """

    expected: StoredHistory
    observed: StoredHistory
    columns: Columns
    ordering: Order = "per-key"
    expect: Guarantee = "effectively-once"
    witnesses: int = 1000
    memory: int = 1 << 30
    spill: Path | None = None
    on_event: Handler = ignore
    rows: dict[str, int] = field(default_factory=dict)
    _keys: KeyCodes = field(default_factory=KeyCodes)

    def judge(self) -> Judgement:
        """The verdict; ``unknown``, naming the record, for histories that cannot be judged."""
        try:
            with temporary_folder("bettong-check-", self.spill) as folder:
                return self._judge(folder)
        except MalformedHistoryError as e:
            return undecided(str(e), [str(e)])

    def _judge(self, directory: Path) -> Judgement:
        ids = Buckets(256, np.uint64, directory, self.memory, "ids")
        logs = Log(directory, "expected"), Log(directory, "observed")
        expected = self._digests(self.expected, self.columns.order, logs[0], ids)
        observed = self._digests(self.observed, self.columns.arrival, logs[1], None)
        if not expected.rows and not observed.rows:
            return undecided("nothing was expected and nothing was seen: that proves nothing")
        twice = repeated(ids)
        reported = named_rows(self.expected, self.columns, twice) if len(twice) else []
        if reported:
            return undecided(f"the histories cannot be judged: {reported[0]}", reported)
        for digests in (expected, observed):
            digests.grow(max(len(expected.sums), len(observed.sums)))
        differ = (expected.sums != observed.sums) | (expected.counts != observed.counts)
        differ |= expected.unsorted | observed.unsorted
        findings = Findings(self.witnesses)
        anomalies = []
        if differ.any():
            matcher = self._match(logs, differ, Matcher.of(len(differ), findings), directory)
            anomalies = anomalies_of(
                findings, matcher, self.expected, self.observed, self.columns, self.ordering
            )
        keyless = int(expected.counts[0]) if self.ordering == "per-key" else 0
        return self.judged(anomalies, findings.counts, keyless)

    def judged(
        self, anomalies: Sequence[Anomaly], counts: Mapping[AnomalyKind, int], keyless: int
    ) -> Judgement:
        """The verdict on anomalies, which says so where expected records have no key, and thus no
        order: so many."""
        per_key = self.ordering == "per-key"
        no_order = per_key and keyless == self.rows["expected"]
        order = "none" if no_order else self.ordering
        judged = judge(anomalies, expect=self.expect, order=order, counts=counts)
        if no_order:
            why = "nothing expected has a key: no order was checked"
        elif per_key and keyless:
            one = keyless == 1
            have, its = ("record has", "its") if one else ("records have", "their")
            why = f"{keyless:,} expected {have} no key: {its} order was not checked"
        else:
            return judged
        return replace(judged, reason=f"{judged.reason}; {why}")

    def _match(
        self, logs: tuple[Log, Log], differ: Mask, matcher: Matcher, directory: Path
    ) -> Matcher:
        sides, alike = [], []
        for name, log in zip(("expected-rows", "observed-rows"), logs, strict=True):
            sides.append(row_buckets(directory, self.memory, name))
            alike.append(gather(log, differ, sides[-1]))
        matcher.alike = alike[0]
        if self.ordering != "none":
            matcher.firsts = Buckets(BUCKETS, FIRST, directory, self.memory, "firsts")
            matcher.arrivals = rank_range(logs[1], self.rows["observed"])
        for rows_expected, rows_observed in zip(*sides, strict=True):
            matcher.match(rows_expected, rows_observed)
        if matcher.firsts is not None:
            find_reorders(matcher.firsts, len(differ), matcher.findings)
        return matcher

    def _groups(self, batch: pa.RecordBatch, ids: U64) -> I64:
        if self.ordering == "none":
            return id_slices(ids)
        if self.ordering == "total" or self.columns.key is None:
            return np.ones(len(ids), np.int64)
        return self._keys.codes(batch.column(self.columns.key))

    def _contents(self, batch: pa.RecordBatch) -> list[pa.Array]:
        names = [*self.columns.compare]
        if self.ordering != "per-key" and self.columns.key is not None:
            names.append(self.columns.key)
        return [batch.column(name) for name in dict.fromkeys(names)]

    def _digests(
        self, history: StoredHistory, rank: str | None, log: Log, ids: Buckets | None
    ) -> Digests:
        digests = Digests(ordered=self.ordering != "none")
        digests.grow({"none": SLICES + 1, "total": 2, "per-key": 1}[self.ordering])
        given = None if rank is None else Ranks(history, rank)
        for batch in self._read(history, self.columns.of(rank)):
            words = hash_ids(batch, self.columns.id)
            if ids is not None:
                ids.add(words, words >> np.uint64(56))
            groups = self._groups(batch, words)
            if self.ordering == "per-key":
                digests.grow(len(self._keys))
            contents = self._contents(batch)
            records = record_hashes(words, contents)
            order = None if given is None else given.of(batch, digests.rows)
            logged: dict[str, Rows] = {"ids": words, "groups": groups.astype(np.int32)}
            logged |= {"records": records} if contents else {}
            logged |= {"ranks": order} if order is not None else {}
            log.add(**logged)
            digests.add(records, groups, order)
        self.rows[history.name] = digests.rows
        return digests

    def _read(self, history: StoredHistory, columns: list[str]) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in history.batches(columns):
            for name in self.columns.id:
                at = first_without_id(batch.column(name))
                if at is not None:
                    raise MalformedHistoryError(
                        f"{history.name} record {rows + at + 1} has no id: "
                        f"{str(batch.slice(at, 1).to_pylist()[0])[:300]}"
                    )
            yield batch
            rows += batch.num_rows
            self.on_event(RecordsRead(history.name, rows))


def gather(log: Log, differ: Mask, buckets: Buckets) -> tuple[int, int]:
    """Put the rows of the groups that differ into buckets by their ids.

    Returns the lowest and the highest rank of the others.
    """
    start, (low, high) = 0, NOTHING
    for piece in log:
        groups = piece["groups"]
        inside = differ[groups]
        at = np.flatnonzero(inside)
        if len(at) < len(groups):
            ranks_alike = piece["ranks"][~inside] if "ranks" in piece else _ends(~inside) + start
            low, high = min(low, int(ranks_alike.min())), max(high, int(ranks_alike.max()))
        rows = np.empty(len(at), ROW)
        rows["id"], rows["place"], rows["group"] = piece["ids"][at], start + at, groups[at]
        rows["rank"] = piece["ranks"][at] if "ranks" in piece else rows["place"]
        rows["content"] = piece["records"][at] if "records" in piece else 0
        buckets.add(rows, rows["id"] >> np.uint64(58))
        start += len(groups)
    return low, high


def _ends(mask: Mask) -> I64:
    """Indices of the first and the last row in a mask that is not empty."""
    return np.array([mask.argmax(), len(mask) - 1 - mask[::-1].argmax()])


def rank_range(log: Log, rows: int) -> tuple[int, int]:
    """Lowest and highest rank of a history."""
    found = [(int(p["ranks"].min()), int(p["ranks"].max())) for p in log if "ranks" in p]
    if not found:
        return 0, max(0, rows - 1)
    return min(low for low, _ in found), max(high for _, high in found)
