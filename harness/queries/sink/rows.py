"""The rows that a sink under test is given; the Python side of ``hooks/Rows.java``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bettong.harness.checkers import Record
from bettong.harness.queries.sink.contract import BATCHES, ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "bettong.hooks.Rows"
ODD = "\0" + "x" * 70_000
"""What the odd row's key ends with: many a target refuses it."""
JUDGED = ("key", "seq", "value")
"""Of the columns of a row, those whose content is judged where read() returns them."""
_ROWS = "it must return the rows that are there, dicts or Spark rows"


@dataclass(frozen=True, slots=True)
class Input:
    """How many rows there are, and how they are dealt out.

    Attributes:
        batches: micro-batches in all.
        rows: in each batch.
        keys: distinct keys.
        partitions: of each batch.
        layout: 0, or another number for another order and partitioning of the same rows.
        empty: the batch that has no rows, or -1.
        odd: the row, counted from 0, that many a target refuses, or -1.
        first: so many batches of rows are left out before batch 0.
    """

    batches: int = BATCHES
    rows: int = ROWS
    keys: int = 5
    partitions: int = 2
    layout: int = 0
    empty: int = -1
    odd: int = -1
    first: int = 0

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows as a streaming DataFrame."""
        options = {name: str(value) for name, value in asdict(self).items()}
        return spark.readStream.format(FORMAT).options(**options).load()

    def batch(self, number: int) -> Iterator[dict[str, Any]]:
        """The rows of one batch, in the order of the stream."""
        if number == self.empty:
            return
        begin = (self.first + number) * self.rows
        for n in range(begin, begin + self.rows):
            yield {
                "id": _id(n),
                "key": f"k{n % self.keys}" + (ODD if n == self.odd else ""),
                "seq": n // self.keys,
                "value": n % 15 * 7919 % 1000,  # equal content comes again
            }

    @property
    def odd_id(self) -> str:
        """The id of the row that many a target refuses; empty where there is none."""
        return "" if self.odd < 0 else _id(self.odd)

    def all(self) -> list[dict[str, Any]]:
        """Every row, in the order of the stream."""
        return [row for number in range(self.batches) for row in self.batch(number)]

    def batch_of(self, id: str) -> int | None:
        """The batch that a row belongs to, by its id; None for an id that no row has."""
        head, _, tail = id.partition("/")
        number = int(tail) // self.rows - self.first if head == "m" and tail.isdigit() else -1
        return number if 0 <= number < self.batches and number != self.empty else None


def _id(number: int) -> str:
    return f"m/{number:06d}"


def read_back(found: Any) -> Iterator[Mapping[str, Any]]:
    """The rows that ``read`` returned, dicts or Rows or what a dict can be made of; raises
    TypeError, in words, when it returned anything else."""
    return rows_of(found, "read()")


def rows_of(found: Any, what: str) -> Iterator[Mapping[str, Any]]:
    """The same, of what some other code of a user's returned."""
    if found is None or isinstance(found, Mapping | str) or not isinstance(found, Iterable):
        raise TypeError(f"{what} returned {type(found).__name__}: {_ROWS}")
    for row in found:
        try:
            values = row.asDict() if hasattr(row, "asDict") else dict(row)
        except (TypeError, ValueError) as e:
            raise TypeError(f"{what} returned a row that is {type(row).__name__}: {_ROWS}") from e
        names = Counter(getattr(row, "__fields__", ()))  # a Spark row's; a dict has each once
        twice = next((name for name, number in names.items() if number > 1), None)
        if twice is not None:
            raise TypeError(f"{what} returned a row with two columns called {twice}: rename one")
        yield values


def judged_fields(
    seen: Iterable[Mapping[str, Any]], besides: Collection[str] = ()
) -> tuple[str, ...]:
    """Those of key, seq and value that any row read has: a row without one that others have, such
    as one that was begun and never finished, has lost it. ``besides``: those that rows of runs
    without faults have."""
    found = {name for row in seen for name in JUDGED if name in row} | set(besides)
    return tuple(name for name in JUDGED if name in found)


def records(rows: Iterable[Mapping[str, Any]], fields: tuple[str, ...]) -> list[Record]:
    """Rows as the checkers take them: the content is what both sides have."""
    return [
        Record(
            id=None if row.get("id") is None else str(row["id"]),
            key=str(row.get("key")) if "key" in fields else None,
            value={name: row.get(name) for name in fields if name != "key"},
        )
        for row in rows
    ]
