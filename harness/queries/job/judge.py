"""What the output of a job shows, held against what it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bettong.harness.checkers import stuck
from bettong.harness.queries.job.compare import Bag, Compare, OuterBag, Table
from bettong.harness.queries.job.envelope import Envelope, columns_of, folded, table_of
from bettong.harness.queries.job.groups import group_key
from bettong.harness.queries.job.once import Once
from bettong.harness.queries.job.rules import (
    Cell,
    Difference,
    Expected,
    Row,
    bag_difference,
    both_matched_and_not,
    cell_of,
    shown,
    table_difference,
)
from bettong.harness.queries.job.settled import settled_bag, settled_table
from bettong.harness.queries.job.values import is_number
from bettong.harness.queries.job.written import AS_IT_IS, Written
from bettong.harness.queries.judge import SinkVerdict, planned_again
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.observation import QueryRun
from bettong.lineage.results import Anomaly

_UNFINISHED = ("Loss", "Corrupt")
"""What an output shows that is not all there yet: a row of a key may have an earlier update."""


@dataclass(frozen=True)
class Judged:
    """What outputs of a job are held against.

    Attributes:
        compare: how.
        expected: by the batch form, the user's function or the envelope of clean runs.
        once: one row a key.
        columns: of the clean run's output.
        left: of an outer join, the columns of the side whose rows are all there.
        sides: of an outer join, rows that are there with their matches or without, where both may
            be.
        blind: why an output in which nothing is wrong proves nothing, or empty.
        written: how outputs are written.
    """

    compare: Compare
    expected: Expected
    once: Once | None = None
    columns: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    sides: Sequence[Row] = ()
    blind: str = ""
    written: Written = AS_IT_IS

    def cut_otherwise(self, clean: Envelope, runs: Sequence[Sequence[Row]]) -> Judged:
        """The same, for batches cut in other ways: held against what all clean runs have in
        common."""
        if self.once is None:
            return replace(self, expected=clean.expected, blind=clean.blind, written=AS_IT_IS)
        read = [self.written.rows(rows) for rows in runs]
        return replace(self, once=self.once.held_against(read, self.once.own))

    def settled(self, runs: Sequence[Sequence[Row]]) -> Judged:
        """The same, for batches cut as in clean runs: what the oracle leaves open is as in them."""
        runs = [self.written.rows(rows) for rows in runs]
        if self.once is not None:
            return replace(self, once=self.once.settled(runs))
        if self.expected.open:
            return self
        tolerance = self.compare.tolerance
        if isinstance(self.compare, Table):
            tables = [table_of(self.compare, rows) for rows in runs]
            expected = settled_table(self.expected, tables, self.compare.key, tolerance)
        else:
            columns = self._columns([row for rows in runs for row in rows])
            expected = settled_bag(self.expected, runs, columns, tolerance)
        return replace(self, expected=expected)

    def fed_again(self) -> Judged:
        """The same, for rows that are fed once more than in the clean runs."""
        return self if self.once is None else replace(self, once=self.once.fed_again())

    def difference(self, seen: Sequence[Row]) -> Difference:
        """What is wrong with an output."""
        seen = self.written.rows(seen)
        if self.once is not None:
            return self.once.difference(folded(self.compare, seen))
        if isinstance(self.compare, Table):
            further = self._further(seen)
            seen = folded(self.compare, seen)
            key, tolerance = self.compare.key, self.compare.tolerance
            return table_difference(self.expected, seen, key, tolerance, further)
        columns = self._columns(seen)
        found = bag_difference(self.expected, seen, columns, self.compare.tolerance)
        if isinstance(self.compare, OuterBag):
            free, left = self.compare.free, self.left
            found.anomalies += both_matched_and_not(seen, left, free, self.expected.must)
            there = {cell_of(row, left) for row in seen}
            for row in self.sides:
                if cell_of(row, left) not in there:
                    lost = Anomaly("Loss", (shown(row, left),), expected=dict(row))
                    found.anomalies.append(lost)
        return found

    def _columns(self, seen: Sequence[Row]) -> tuple[str, ...]:
        """The columns that are compared of bags."""
        columns = self.columns or tuple(columns_of(self.compare, self.expected.must))
        if isinstance(self.compare, Bag) and self.compare.columns:
            return columns
        return (*columns, *self._further(seen))

    def _further(self, seen: Sequence[Row]) -> tuple[str, ...]:
        """Columns that neither the clean run nor what is expected has: JSON leaves nulls out, so
        that they are null in all rows there."""
        rows = (*self.expected.must, *self.expected.optional)
        known = {*self.columns, *self.compare.free, *(name for row in rows for name in row)}
        if isinstance(self.compare, Table):
            known.add(self.compare.latest)
        return tuple(dict.fromkeys(n for row in seen for n in row if n not in known))

    def run(self, run: QueryRun, may_stand: bool = False) -> SinkVerdict:
        """Judge one run. ``may_stand``: a query that stands still and says why is right, and what
        it has put out by then is not all."""
        if run.unreadable:
            unreadable = Anomaly("Violation", seen=cause(run.unreadable), note="read() fails")
            return SinkVerdict((unreadable,), ())
        found = self.difference(run.rows)
        anomalies = list(found.anomalies)
        if may_stand and run.errors and not run.drained:
            anomalies = [a for a in anomalies if a.kind not in _UNFINISHED]
        elif not run.drained:
            why = cause(run.errors[-1]) if run.errors else "it does not end"
            lost = [message for a in anomalies if a.kind == "Loss" for message in a.messages]
            anomalies = [a for a in anomalies if a.kind != "Loss"]  # what is not done yet
            anomalies.append(stuck(why, lost))
        anomalies += planned_again(run)
        if found.unjudged and not anomalies:
            some = f"{len(found.unjudged)} row(s) are in no clean run, e.g. {found.unjudged[0]}"
            return SinkVerdict(
                (), (), f"{some}: which rows there are depends on how batches are cut"
            )
        return SinkVerdict(tuple(anomalies), (), "" if anomalies else self.blind)


def bag_of(
    expected: Mapping[str, Sequence[Row]], columns: Sequence[str], *, between: bool = False
) -> Expected:
    """What batch runs say, of which the last one counts the fewest rows: rows of all of them must
    be there, rows of some may; of a group that has other values in each, one row.

    Args:
        between: some rows that the others count may be dropped, each by itself.
    """
    outputs = list(expected.values())
    counts = [Counter(cell_of(row, columns) for row in rows) for rows in outputs]
    alike = all(count == counts[0] for count in counts)
    key = None if alike else group_key(outputs, columns)
    if key is None:
        return replace(_must_and_may(outputs, columns), between=between)
    of_key: dict[Cell, list[Row | None]] = {}
    for place, rows in enumerate(reversed(outputs)):
        for row in rows:
            of_key.setdefault(cell_of(row, key), [None] * len(outputs))[place] = row
    groups, maybe = {}, {}
    for cell, each in of_key.items():
        known = [row for row in each if row is not None]
        varies = len({cell_of(row, columns) for row in known}) > 1
        if each[0] is not None and varies:
            groups[cell] = known
        elif each[0] is None and between:
            maybe[cell] = [nothing_of(known[0], key), *known]
        elif varies:
            maybe[cell] = known
    others = [
        [row for row in rows if cell_of(row, key) not in groups.keys() | maybe.keys()]
        for rows in outputs
    ]
    found = _must_and_may(others, columns)
    return replace(found, groups=list(groups.values()), maybe=list(maybe.values()), between=between)


def nothing_of(row: Row, key: Sequence[str]) -> Row:
    """The row of a group that counts nothing."""
    return {n: 0 if is_number(value) and n not in key else value for n, value in row.items()}


def _must_and_may(outputs: Sequence[Sequence[Row]], columns: Sequence[str]) -> Expected:
    counts = [Counter(cell_of(row, columns) for row in rows) for rows in outputs]
    example = {cell_of(r, columns): r for rows in outputs for r in rows}
    must, optional = [], []
    for cell, row in example.items():
        times = [count[cell] for count in counts]
        must += [row] * min(times)
        optional += [row] * (max(times) - min(times))
    return Expected(must, optional)


__all__ = ["Bag", "Judged", "bag_of", "nothing_of"]
