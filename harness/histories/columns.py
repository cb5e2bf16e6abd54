"""Which columns of stored histories mean what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.harness.histories.digest import I64
from bettong.harness.histories.hashing import U64, hash_column, mix
from bettong.harness.histories.json_values import JsonType
from bettong.harness.histories.malformed import MalformedHistoryError
from bettong.harness.histories.readers import StoredHistory
from bettong.lineage.errors import UsageError

Row = dict[str, Any]
_NEXT = np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns mean what.

    Attributes:
        id: one or several that together name a message.
        key: of the key, or None.
        order: of the expected history: the order within a key, when it is not that of the lines.
        arrival: of the observed history: the order seen, when it is not that of the lines.
        compare: contents that have to be equal.
        batch: of the observed history: the batch that made a record visible, to be reported.
    """

    id: tuple[str, ...] = ("id",)
    key: str | None = "key"
    order: str | None = None
    arrival: str | None = None
    compare: tuple[str, ...] = ()
    batch: str | None = None

    def of(self, rank: str | None) -> list[str]:
        """All columns to be read of a history whose order is in this column."""
        names = [*self.id, self.key, rank, *self.compare]
        return list(dict.fromkeys(n for n in names if n is not None))


def message_id(row: Row, columns: Columns) -> str:
    """The id as reports show it."""
    return "/".join(str(row[name]) for name in columns.id)


def hash_ids(batch: pa.RecordBatch, columns: tuple[str, ...]) -> U64:
    """The hash of each record's id."""
    words = hash_column(batch.column(columns[0]))
    for name in columns[1:]:  # partition 1, offset 2 is not partition 2, offset 1
        words = mix(words * _NEXT + hash_column(batch.column(name)))
    return words


class Ranks:
    """The order of each record as one column of a history says it."""

    def __init__(self, history: StoredHistory, column: str) -> None:
        self._history, self._column = history, column
        self._unit = ""

    def of(self, batch: pa.RecordBatch, start: int) -> I64:
        """Ranks of the next records; ``start`` is the place of the first of them.

        Raises UsageError when the column has no order, MalformedHistoryError for a null in it, or
        for values of which the earlier ones were counted in another unit.
        """
        values, name = batch.column(self._column), self._history.name
        if values.null_count:
            at = int(pc.index(pc.is_null(values), True).as_py())
            raise MalformedHistoryError(f"{name} record {start + at + 1} has no {self._column}")
        numbers, unit = _counted(values, self._column)
        if self._unit not in ("", unit) and len(numbers):
            raise MalformedHistoryError(
                f"{name}: {self._column} is {self._unit} in some records and {unit} in others, "
                "which have no order in common: write it alike in all of them"
            )
        self._unit = unit if len(numbers) else self._unit
        return numbers


def whole_numbers(values: pa.Array, column: str) -> I64:
    """An order that whole numbers, times, or texts of times tell. Raises UsageError for others."""
    return _counted(values, column)[0]


def _counted(values: pa.Array, column: str) -> tuple[I64, str]:
    """The numbers of an order, and what they count."""
    try:
        if isinstance(values.type, JsonType):
            values = pa.array(values.to_pylist())
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        kind = values.type
        if pa.types.is_large_string(kind) or pa.types.is_string(kind):
            values = _times(values)
        elif pa.types.is_floating(kind):
            values = _whole(values)
        elif not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or _is_time(kind)):
            raise pa.ArrowInvalid("it has no order")
        unit = str(values.type) if _is_time(values.type) else "a whole number"
        if values.type.bit_width == 32 and _is_time(values.type):  # Arrow widens them by a step
            values = values.cast(pa.int32())
        numbers: I64 = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, OverflowError) as e:
        raise UsageError(
            f"{column} is {values.type}: an order is given by whole numbers or times"
        ) from e
    return numbers, unit


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) and kind != pa.month_day_nano_interval())


def _whole(values: pa.Array) -> pa.Array:
    floats = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if not (floats == np.floor(floats)).all():
        raise pa.ArrowInvalid("a part of a whole number")
    return values.cast(pa.int64())


def _times(texts: pa.Array) -> pa.Array:
    """Times of no zone, or instants where each text names its zone."""
    try:
        return texts.cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        return texts.cast(pa.timestamp("ns", "UTC"))


def names_in(text: str) -> tuple[str, ...]:
    """Names of columns, with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def chosen_columns(
    expected: StoredHistory,
    observed: StoredHistory,
    ids: tuple[str, ...],
    key: str | None,
    order: str | None,
    arrival: str | None,
    compare: str | None,
    ignore: tuple[str, ...],
    batch: str | None = None,
) -> Columns:
    """The columns that a user named, completed by what both histories have.

    Raises UsageError, with the nearest name, for a column that is not there.
    """
    left, right = expected.columns(), observed.columns()
    both = [name for name in left if name in right]
    if key is None and "key" in (both if left and right else left or right):
        key = "key" if "key" not in ignore else None
    for history in (expected, observed):
        for name in ids:
            history.require(name, "--id")
        if key is not None:
            history.require(key, "--key")
    if order is not None:
        expected.require(order, "--order")
    if arrival is not None:
        observed.require(arrival, "--arrival")
    if batch is not None:
        observed.require(batch, "--batch")
    known = {*ids, key, *ignore, batch}
    asked = (("--compare", names_in(compare or "")), ("--key", (key or "",)), ("--id", ids))
    for option, name in ((option, name) for option, names in asked for name in names):
        if name in ignore:
            raise UsageError(f"{option} {name} --ignore {name}: say one of the two")
    for name in ignore:
        if name not in right:
            expected.require(name, "--ignore")
    if compare is None:
        contents = tuple(name for name in both if name not in known)
    else:
        contents = names_in(compare)
        for name in contents:
            expected.require(name, "--compare")
            observed.require(name, "--compare")
    return Columns(ids, key, order, arrival, contents, batch)


def not_compared(
    expected: StoredHistory, observed: StoredHistory, columns: Columns, ignore: tuple[str, ...]
) -> tuple[str, ...]:
    """Columns of the expected history that nobody has ruled out, and that say nothing because the
    observed one has no such column: dropped on the way perhaps, or called something else."""
    left, right = expected.columns(), observed.columns()
    known = {*columns.id, columns.order, *ignore}
    return tuple(name for name in left if right and name not in right and name not in known)


def of_folders(expected: StoredHistory, ignore: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of the expected history that stand in the names of folders only, which say nothing,
    and that nobody has ruled out."""
    known = {*expected.columns(), *ignore}
    return tuple(name for name in expected.partitions if name not in known)
