"""Second pass: records of the groups that differ, matched by id, and the order of what matched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bettong.harness.histories.digest import I64
from bettong.harness.histories.spill import Buckets, Rows
from bettong.lineage.results import AnomalyKind

_BUCKET_BITS = 6
BUCKETS = 1 << _BUCKET_BITS
ROW = np.dtype([("id", "u8"), ("content", "u8"), ("rank", "i8"), ("place", "i8"), ("group", "i4")])
FIRST = np.dtype([("arrival", "i8"), ("rank", "i8"), ("e", "i8"), ("o", "i8"), ("group", "i4")])
SHOWN_PLACES = 10
NOTHING = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)  # the range of no ranks at all


@dataclass(frozen=True, slots=True)
class Witness:
    """Where an anomaly can be seen: places of records in the expected and observed history.

    Attributes:
        observed: of a Duplicate the first ones and the last.
        rank: of the expected record, for a Loss.
        group: its group, for a Loss.
        times: how often it was seen.
    """

    kind: AnomalyKind
    expected: tuple[int, ...] = ()
    observed: tuple[int, ...] = ()
    rank: int = 0
    group: int = 0
    times: int = 1


@dataclass(slots=True)
class Findings:
    """Counts of all anomalies, and the first witnesses of each kind."""

    limit: int
    counts: dict[AnomalyKind, int] = field(default_factory=dict)
    witnesses: dict[AnomalyKind, list[Witness]] = field(default_factory=dict)

    def add(self, kind: AnomalyKind, number: int, witnesses: Iterator[Witness]) -> None:
        if number:
            self.counts[kind] = self.counts.get(kind, 0) + number
            kept = [*self.witnesses.get(kind, ()), *witnesses]
            kept.sort(key=lambda w: (w.observed or w.expected)[0])
            self.witnesses[kind] = kept[: self.limit]


@dataclass(slots=True)
class Matcher:
    """Matches buckets of expected rows with those of observed ones.

    Attributes:
        seen_first, seen_last: lowest and highest rank that was seen, of each group that differs.
        alike: the same of all the other groups together.
        firsts: where first occurrences go for :func:`find_reorders`, or None.
        arrivals: lowest and highest rank of the observed history.
    """

    findings: Findings
    seen_first: I64
    seen_last: I64
    firsts: Buckets | None = None
    arrivals: tuple[int, int] = (0, 0)
    alike: tuple[int, int] = NOTHING

    @classmethod
    def of(cls, groups: int, findings: Findings) -> Matcher:
        """One that has seen nothing yet."""
        return cls(findings, np.full(groups, NOTHING[0]), np.full(groups, NOTHING[1]))

    def seen(self) -> tuple[int, int]:
        """Lowest and highest rank that was seen of all groups."""
        low, high = self.alike
        return min(low, int(self.seen_first.min())), max(high, int(self.seen_last.max()))

    def match(self, expected: Rows, observed: Rows) -> None:
        """Add what one bucket of ids shows; each id is in ``expected`` at most once."""
        expected = expected[np.argsort(expected["id"])]
        observed = observed[np.lexsort((observed["place"], observed["rank"], observed["id"]))]
        ids = observed["id"]
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]][: len(ids)])
        times = np.diff(np.r_[starts, len(ids)])
        at = np.searchsorted(expected["id"], ids[starts])
        at[at == len(expected)] = 0
        known = (
            expected["id"][at] == ids[starts] if len(expected) else np.zeros(len(starts), np.bool_)
        )
        self._phantoms(observed, starts[~known], times[~known])
        at, starts, times = at[known], starts[known], times[known]
        lost = np.ones(len(expected), np.bool_)
        lost[at] = False
        self._losses(expected[lost])
        self._duplicates(expected[at], observed, starts, times)
        self._corrupt(expected, observed, np.repeat(at, times), _spans(starts, times))
        seen = expected[at]
        np.minimum.at(self.seen_first, seen["group"], seen["rank"])
        np.maximum.at(self.seen_last, seen["group"], seen["rank"])
        self._keep_order(seen, observed[starts])

    def _losses(self, rows: Rows) -> None:
        self.findings.add(
            "Loss",
            len(rows),
            (
                Witness("Loss", (int(r["place"]),), (), int(r["rank"]), int(r["group"]))
                for r in _lowest(rows, "place", self.findings.limit)
            ),
        )

    def _phantoms(self, observed: Rows, starts: I64, times: I64) -> None:
        first = np.argsort(observed["place"][starts])[: self.findings.limit]
        self.findings.add(
            "Phantom",
            len(starts),
            (
                Witness("Phantom", (), (int(observed["place"][starts[i]]),), times=int(times[i]))
                for i in first
            ),
        )

    def _duplicates(self, expected: Rows, observed: Rows, starts: I64, times: I64) -> None:
        again = np.flatnonzero(times > 1)
        first = again[np.argsort(observed["place"][starts[again]])][: self.findings.limit]
        self.findings.add(
            "Duplicate",
            len(again),
            (
                Witness(
                    "Duplicate",
                    (int(expected["place"][i]),),
                    _some_places(observed["place"][starts[i] : starts[i] + times[i]]),
                    times=int(times[i]),
                )
                for i in first
            ),
        )

    def _corrupt(self, expected: Rows, observed: Rows, at: I64, rows: I64) -> None:
        right, seen = expected[at], observed[rows]
        wrong = (right["content"] != seen["content"]) | (right["group"] != seen["group"])
        right, seen = right[wrong], seen[wrong]
        first = np.argsort(seen["place"])[: self.findings.limit]
        self.findings.add(
            "Corrupt",
            len(right),
            (
                Witness("Corrupt", (int(right["place"][i]),), (int(seen["place"][i]),))
                for i in first
            ),
        )

    def _keep_order(self, expected: Rows, observed: Rows) -> None:
        if self.firsts is None:
            return
        keyed = expected["group"] > 0
        expected, observed = expected[keyed], observed[keyed]
        rows = np.empty(len(expected), FIRST)
        rows["arrival"], rows["o"] = observed["rank"], observed["place"]
        rows["rank"], rows["e"] = expected["rank"], expected["place"]
        rows["group"] = expected["group"]
        low, high = self.arrivals
        width = np.uint64(max(0, (high - low).bit_length() - _BUCKET_BITS))
        above = rows["arrival"].view(np.uint64) - np.int64(low).view(np.uint64)
        self.firsts.add(rows, above >> width)


def _some_places(places: I64) -> tuple[int, ...]:
    """The first places, and the last."""
    shown = places if len(places) <= SHOWN_PLACES else np.r_[places[:SHOWN_PLACES], places[-1]]
    return tuple(map(int, shown))


def _spans(starts: I64, lengths: I64) -> I64:
    """All indices of runs of rows."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + lengths, lengths) + np.arange(total)


def _lowest(rows: Rows, field_name: str, limit: int) -> Rows:
    if len(rows) > limit:
        rows = rows[np.argpartition(rows[field_name], limit)[:limit]]
    return rows[np.argsort(rows[field_name])]


def find_reorders(firsts: Buckets, groups: int, findings: Findings) -> None:
    """Steps back within a group, over first occurrences in the order of arrival; those that came
    together are in the right order.

    Args:
        firsts: in buckets by arrival, earlier ones first.
        groups: number of groups.
    """
    last: npt.NDArray[np.void] = np.zeros(groups, FIRST)
    last["rank"] = np.iinfo(np.int64).min
    for rows in firsts:
        rows = rows[np.lexsort((rows["rank"], rows["arrival"], rows["group"]))]
        group = rows["group"]
        new = np.r_[True, group[1:] != group[:-1]][: len(rows)]
        before = np.empty_like(rows)
        before[1:] = rows[:-1]
        before[new] = last[group[new]]
        back = (before["rank"] > rows["rank"]) & (before["arrival"] < rows["arrival"])
        late, early = rows[back], before[back]
        first = np.argsort(early["o"])[: findings.limit]
        findings.add(
            "Reorder",
            len(late),
            (
                Witness(
                    "Reorder",
                    (int(late["e"][i]), int(early["e"][i])),
                    (int(early["o"][i]), int(late["o"][i])),
                )
                for i in first
            ),
        )
        ends = np.r_[new[1:], True][: len(rows)]
        last[group[ends]] = rows[ends]


def row_buckets(directory: Path, limit: int, name: str) -> Buckets:
    """Buckets for rows, split by their ids."""
    return Buckets(BUCKETS, ROW, directory, limit, name)
