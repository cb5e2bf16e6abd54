"""Deduplication: one row of each key. Which of the key's rows it is, is free; what the job makes of
that row is not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bettong.harness.queries.job.rules import (
    Cell,
    Difference,
    Row,
    cell_of,
    shown,
)
from bettong.harness.queries.job.values import near
from bettong.lineage.results import Anomaly


@dataclass(frozen=True)
class Once:
    """What a deduplicated output is held against.

    Attributes:
        key: the columns that rows are deduplicated by.
        given: the rows of the input.
        own: columns that the job makes itself and that are judged.
        clean: the rows of the runs without a fault.
        made: what the job's transform makes of rows of the input, where it can be asked.
        free: columns that are not compared.
        tolerance: floating-point numbers that differ by at most so much are equal.
        columns: those that are compared; all when none is named.
        has: columns that the output has in runs without a fault.
        late: keys that may be missing, for all of their rows may be dropped.
        most: how many rows of a key may be there, where it may be more than one.
        least: how many of them have to be, where it is more than one.
    """

    key: tuple[str, ...]
    given: Sequence[Row]
    own: tuple[str, ...] = ()
    clean: Sequence[Row] = ()
    made: Sequence[Row] = ()
    free: frozenset[str] = frozenset()
    tolerance: float = 0.0
    columns: tuple[str, ...] = ()
    has: frozenset[str] = frozenset()
    late: frozenset[Cell] = frozenset()
    most: Mapping[Cell, int] = field(default_factory=dict)
    least: Mapping[Cell, int] = field(default_factory=dict)

    def held_against(self, runs: Iterable[Sequence[Row]], own: Sequence[str]) -> Once:
        """With rows of clean runs: of the job's ``own`` columns those are judged that are the same
        in all runs that keep the same row."""
        # JSON leaves nulls out.
        clean = [{**dict.fromkeys(own), **row} for rows in runs for row in rows]
        values: dict[tuple[Cell, str], Any] = {}
        free = set()
        for row in clean:
            kept = cell_of(row, (*self.key, *self._inputs))
            for name in own:
                first = values.setdefault((kept, name), row.get(name))
                if not near(first, row.get(name), self.tolerance):
                    free.add(name)
        has = frozenset(name for row in clean for name in row)
        return replace(self, own=tuple(n for n in own if n not in free), clean=clean, has=has)

    def settled(self, runs: Sequence[Sequence[Row]]) -> Once:
        """For batches cut as in clean runs: of keys that may be missing, or be there several times,
        there are as many rows as in them."""
        times = [Counter(cell_of(row, self.key) for row in rows) for rows in runs]
        late = frozenset(cell for cell in self.late if not all(each[cell] for each in times))
        most = {
            cell: min(number, max(1, *(each[cell] for each in times)))
            for cell, number in self.most.items()
        }
        least = {cell: min(most[cell], *(each[cell] for each in times)) for cell in most}
        return replace(self, late=late, most=most, least=least)

    def asked(self, made: Sequence[Row]) -> Once:
        """With what ``transform`` makes of rows, if that is how the clean runs' rows are: what is
        written may be another thing, or a text of it."""
        asked = replace(self, made=made)
        alike = all(
            any(asked._vouches(one, row) for one in asked._like(row, made)) for row in self.clean
        )
        return asked if alike else self

    def fed_again(self) -> Once:
        """For rows that are fed once more than in the clean runs: of a row that comes later again
        the transform alone can say what the job makes."""
        known = {name for row in self.made for name in row}
        return replace(self, own=tuple(n for n in self.own if n in known), clean=())

    def difference(self, seen: Sequence[Row]) -> Difference:
        """One row of each key, it is one of the rows of that key, and the job's own columns are
        what the job makes of it."""
        result = Difference()
        rows_of = _by_key(self.given, self.key)
        found = _by_key(seen, self.key)
        columns = {name for row in seen for name in row} | self.has
        judged = [n for n in self._inputs if n in columns and self._is_compared(n)]
        further = columns - self.has - set(self._inputs) if self.has else set()
        for cell, rows in rows_of.items():
            if cell not in found and cell not in self.late:
                name = (shown(rows[0], self.key),)
                result.anomalies.append(Anomaly("Loss", name, expected=dict(rows[0])))
        for cell, rows in found.items():
            name = (shown(rows[0], self.key),)
            if cell not in rows_of:
                result.anomalies.append(Anomaly("Phantom", name, seen=dict(rows[0])))
                continue
            most = self.most.get(cell, 1)
            if len(rows) > most:
                times = {"times": len(rows)}
                result.anomalies.append(
                    Anomaly("Duplicate", name, expected={"times": most}, seen=times)
                )
            result.anomalies += [
                Anomaly("Loss", name, expected=dict(rows[0]), note="one of several of its key")
            ] * (self.least.get(cell, 1) - len(rows))
            for row in rows:
                odd = [n for n in further if self._is_compared(n) and row.get(n) is not None]
                like = [one for one in rows_of[cell] if self._agrees(one, row, judged)]
                if like and self.own and not odd:
                    self._judge_own(row, like, result)
                elif odd or not like:
                    what = f"no run without a fault has {', '.join(sorted(odd))}"
                    note = what if odd else "it is none of the rows of its key"
                    right = dict((like or rows_of[cell])[0])
                    result.anomalies.append(
                        Anomaly("Corrupt", name, expected=right, seen=dict(row), note=note)
                    )
        return result

    def _is_compared(self, name: str) -> bool:
        named = not self.columns or name in (*self.key, *self.columns)
        return named and name not in self.free

    def _agrees(self, one: Row, other: Row, columns: Iterable[str]) -> bool:
        """Whether they are equal in some columns; a row without one of them has a null there."""
        return all(near(one.get(n), other.get(n), self.tolerance) for n in columns)

    def _judge_own(self, row: Row, like: Sequence[Row], result: Difference) -> None:
        """Whether the job's own columns are what a clean run has, or its transform makes, of that
        row. Where no clean run kept it, or rows that differ in what the output does not have could
        be it, only the transform can say what is right."""
        clean, made = self._like(row, self.clean), self._like(row, self.made)
        vouching = [one for one in (*clean, *made) if self._vouches(one, row)]
        if any(set(self.own) <= one.keys() for one in vouching):
            return
        differ = {cell_of(one, sorted(one)) for one in like}
        if (len(differ) > 1 or not clean) and (vouching or not made):
            result.unjudged.append(shown(row))
            return
        rights = clean or made
        odd = [n for n in self.own if not near(rights[0].get(n), row.get(n), self.tolerance)]
        result.anomalies.append(
            Anomaly(
                "Corrupt",
                (shown(row, self.key),),
                expected={n: rights[0].get(n) for n in odd},
                seen={n: row.get(n) for n in odd},
                note=f"{', '.join(odd)} made otherwise than without a fault",
            )
        )

    def _like(self, row: Row, known: Sequence[Row]) -> list[Row]:
        """The known rows of the same key that are equal in all that the job does not make."""
        have = {name for one in known for name in one} & (self.has | row.keys())
        names = [name for name in self._inputs if name in have]
        key = cell_of(row, self.key)
        among = [one for one in known if cell_of(one, self.key) == key]
        return [one for one in among if self._agrees(one, row, names)]

    def _vouches(self, known: Row, row: Row) -> bool:
        """Whether a row has the job's own columns as one that is known to be right, in what that
        one has of them."""
        names = [n for n in self.own if n in known]
        return all(near(known[n], row.get(n), self.tolerance) for n in names)

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        return tuple(sorted({name for row in self.given for name in row} - self.free))


def one_of_each_key(rows: Sequence[Row], key: Sequence[str]) -> list[list[Row]]:
    """Different rows in sets with at most one of each key: a row's own outcome is known in each."""
    sets: list[list[Row]] = []
    for same in _by_key(rows, key).values():
        different = {cell_of(row, sorted(row)): row for row in same}
        for number, row in enumerate(different.values()):
            if number == len(sets):
                sets.append([])
            sets[number].append(row)
    return sets


def _by_key(rows: Sequence[Row], key: Sequence[str]) -> dict[Cell, list[Row]]:
    found: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        found[cell_of(row, key)].append(row)
    return found
