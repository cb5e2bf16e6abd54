"""What a job under test is fed: files, a topic, rows, or a source of its own; step by step.

All inputs take their step of the same number at once, and a step is put in place while the query
waits for it, so that one step is one micro-batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any, ClassVar

from bettong.harness.queries.job import csv_files, parquet_files
from bettong.harness.queries.job.made_rows import Row, as_text, columns_of, make_rows
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of

_STEPS = 4
_PER_STEP = 5
FORMATS = ("json", "csv", "parquet")
_WRITTEN = {"csv": csv_files, "parquet": parquet_files}
"""What cannot write all that JSON can."""
_WRITTEN_WITH = {
    "csv": {"sep": ",", "delimiter": ",", "header": "true"},
    "json": {"multiline": "false"},
}
"""Options of Spark's reader, without which it would read other rows."""


@dataclass(frozen=True, kw_only=True)
class _Fed:
    """Rows and how they are cut into steps.

    Attributes:
        schema: of the rows, as DDL; needed where rows are given.
        per_step: rows a step; 5 unless said.
        steps: how many steps of rows are made, where rows are not given.
        closing: a last step of one row that closes what waits for the watermark: a row, of which
            columns may be left out, or just its event time.
    """

    schema: str = ""
    per_step: int = _PER_STEP
    steps: int = _STEPS
    closing: Row | str | date | None = None

    def dealt(self, given: str | Sequence[Row]) -> list[list[Row]]:
        """The rows of each step, the closing one left out; raises UsageError."""
        for name, number in (("per_step", self.per_step), ("steps", self.steps)):
            if not isinstance(number, int):
                raise UsageError(f"{name}={number!r}: write a number of rows or steps, e.g. 5")
        if self.per_step < 1 or self.steps < 1:
            raise UsageError("an input has at least one step of at least one row")
        if isinstance(given, str):
            rows = list(make_rows(given, self.per_step * self.steps))
        else:
            rows = [_row(row) for row in given]
        if not rows:
            raise UsageError("an input without rows proves nothing: give rows, or a schema")
        known = columns_of(self.ddl(given))
        for row in rows:
            for name in row:
                one_of(name, tuple(known), "column")
        return [rows[at : at + self.per_step] for at in range(0, len(rows), self.per_step)]

    def ddl(self, given: str | Sequence[Row]) -> str:
        """The schema; raises UsageError when nothing says it."""
        if isinstance(given, str):
            return given
        if not self.schema:
            raise UsageError("rows are given without schema=: write e.g. schema='id STRING'")
        return self.schema

    def closing_row(self, given: str | Sequence[Row]) -> Row | None:
        """The closing row with all its columns, or None; raises UsageError."""
        if self.closing is None:
            return None
        columns = columns_of(self.ddl(given))
        whole = self.dealt(given)[-1][-1]
        if isinstance(self.closing, dict):
            for name in self.closing:
                one_of(name, tuple(columns), "column of the closing row")
            return {**whole, **_row(self.closing)}
        at = next((name for name, kind in columns.items() if kind.startswith("timestamp")), None)
        if at is None:
            raise UsageError("closing= is a time, and no column is a TIMESTAMP: give a whole row")
        return {**whole, at: as_text(_time(self.closing))}


def _row(given: Any) -> Row:
    """A row with values as they are fed; raises UsageError."""
    if hasattr(given, "asDict"):
        given = given.asDict(recursive=True)
    if not isinstance(given, Mapping):
        raise UsageError(f"a row is {given!r}: write a dict, column -> value")
    row = {}
    for name, value in given.items():
        try:
            row[name] = as_text(value)
        except UsageError as e:
            raise UsageError(f"the column {name}: {e}") from e
    return row


def _time(closing: Any) -> Any:
    """The same; raises UsageError for what Spark would read as no time at all."""
    try:
        if not isinstance(closing, date):
            datetime.fromisoformat(closing)
    except (TypeError, ValueError):
        raise UsageError(
            f"closing={closing!r} is no time: write e.g. closing='2030-01-01', or a whole row"
        ) from None
    return closing


Given = Any
"""A schema as DDL or StructType, for which rows are made; rows; or a function that gives rows."""


def _given(rows: Given) -> str | Sequence[Row]:
    if callable(rows):
        rows = rows()
    if isinstance(rows, str) or hasattr(rows, "fields"):
        return _ddl(rows)
    if not isinstance(rows, Iterable):
        raise UsageError(f"{rows!r} is no schema and no rows: write e.g. 'id STRING', or dicts")
    return list(rows)


def _ddl(schema: Any) -> str:
    """A schema as DDL."""
    if isinstance(schema, str):
        return schema
    if not hasattr(schema, "fields"):
        raise UsageError(f"schema={schema!r}: write e.g. 'id STRING', or a StructType")
    return ", ".join(f"{_quoted(x.name)} {x.dataType.simpleString()}" for x in schema.fields)


def _quoted(name: str) -> str:
    """A column's name as DDL has it."""
    return name if re.fullmatch(r"\w+", name) else f"`{name.replace('`', '``')}`"


def _fed(**dealt: Any) -> _Fed:
    known = tuple(each.name for each in fields(_Fed))
    for name in dealt:
        one_of(name, known, "word of an input")
    return _Fed(**{**dealt, "schema": _ddl(dealt.get("schema", ""))})


class StepInput:
    """What all inputs that are fed step by step have in common."""

    kind: ClassVar[str] = ""
    given: str | Sequence[Row]
    fed: _Fed

    @property
    def on_topic(self) -> bool:
        """Whether its rows are records of a topic."""
        return self.kind == "topic"

    @property
    def file_format(self) -> str:
        """That of files of its rows."""
        return "json"

    @property
    def schema(self) -> str:
        """Of the rows, as DDL."""
        return self.fed.ddl(self.given)

    @property
    def steps(self) -> list[list[Row]]:
        """The rows of each step; the closing one is a step of its own."""
        closing = self.closing
        return [*self.fed.dealt(self.given), *([[closing]] if closing else [])]

    @property
    def rows(self) -> list[Row]:
        """All rows but the closing one."""
        return [row for step in self.fed.dealt(self.given) for row in step]

    @property
    def closing(self) -> Row | None:
        """The closing row."""
        return self.fed.closing_row(self.given)


class Rows(StepInput):
    """Rows that Bettong hands over itself, for jobs that read no particular source::

    Rows("id STRING, at TIMESTAMP")                       # made for you
    Rows([{"id": "a"}, {"id": "b"}], schema="id STRING")  # your own
    """

    kind = "rows"

    def __init__(self, rows: Given, **dealt: Any) -> None:
        self.given, self.fed = _given(rows), _fed(**dealt)


class Files(StepInput):
    """Files of a folder, one a step, each put in place by one rename.

    Args:
        format: ``json`` (a row a line), ``csv`` (with a header) or ``parquet``.
        rows: rows of your own, or a schema as DDL for which rows are made.
        options: of Spark's reader, for ``env.input``.
    """

    kind = "files"

    def __init__(
        self,
        format: str,
        rows: Given,
        options: Mapping[str, str] | None = None,
        **dealt: Any,
    ) -> None:
        self.format = one_of(format, FORMATS, "format of files")
        self.options = dict(options or {})
        _expect_read_as_written(format, self.options)
        self.given, self.fed = _given(rows), _fed(**dealt)

    @property
    def file_format(self) -> str:
        """That of files of its rows."""
        return self.format

    @property
    def steps(self) -> list[list[Row]]:
        """The rows of each step; raises UsageError where the format cannot have them."""
        columns = columns_of(self.schema)
        written = _WRITTEN.get(self.format)
        if written is not None:
            for name, kind in columns.items():
                written.expect_kind(name, kind)
        steps = super().steps
        if written is not None:
            written.expect_values(columns, [row for step in steps for row in step])
        return steps


def _expect_read_as_written(format: str, options: Mapping[str, Any]) -> None:
    """Raises UsageError for an option by which Spark would read other rows than are written."""
    for name, value in options.items():
        needed = _WRITTEN_WITH.get(format, {}).get(name.lower(), value)
        if str(value).lower() != str(needed).lower():
            raise UsageError(
                f"the option {name}={value!r}: files of {format} are written with {needed!r}: "
                "leave it out, for how rows are written changes nothing of what is judged"
            )


class Topic(StepInput):
    """A Kafka topic of its own for every run; each row is a record whose value is JSON.

    Args:
        name: the topic is called after it: ``env.topic(name of the input)`` says how.
        rows: rows of your own, or a schema as DDL for which rows are made.
        partitions: of the topic; rows with the same key are in the same one.
        key: the column that is the record's key, or none.
        server: the name of the broker's endpoint.
    """

    kind = "topic"

    def __init__(
        self,
        name: str,
        rows: Given,
        partitions: int = 1,
        key: str = "",
        server: str = "kafka",
        **dealt: Any,
    ) -> None:
        if partitions < 1:
            raise UsageError(f"topic {name}: it has at least one partition")
        self.name, self.partitions, self.key, self.server = name, partitions, key, server
        self.given, self.fed = _given(rows), _fed(**dealt)

    @property
    def steps(self) -> list[list[Row]]:
        """The rows of each step; raises UsageError where no column is the key."""
        if self.key:
            one_of(self.key, tuple(columns_of(self.schema)), f"key= of topic {self.name}")
        return super().steps


@dataclass(frozen=True)
class Recorded:
    """A source of the user's own, which decides itself what a batch is: a Python ``DataSource``
    class, or the short name of a format that Spark knows.

    Before anything else, the rows between two of its offsets are read twice and must be equal.
    """

    source: Any
    options: Mapping[str, str] = field(default_factory=dict)
    kind: ClassVar[str] = "recorded"


Input = StepInput | Recorded
