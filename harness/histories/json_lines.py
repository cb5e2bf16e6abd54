"""JSON lines as Arrow columns, as fast as Arrow's own reader where that reader is exact."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from bettong.harness.histories.json_values import (
    MAX_NESTING,
    floats_are_exact,
    json_array,
    nesting,
    parse,
)
from bettong.harness.histories.malformed import MalformedHistoryError

JSON_BLOCK = 16 << 20
MAX_LINE = 256 << 20


def json_tables(
    file: Path, columns: Sequence[str] | None, seen: dict[str, None] | None = None
) -> Iterator[pa.Table]:
    """Blocks of lines; a column that a block lacks is null in it.

    Args:
        columns: those that are wanted; all by default.
        seen: gets the names of all columns.

    Raises MalformedHistoryError, naming the line.
    """
    reader = _Reader(file)
    for block in _line_blocks(file):
        table = reader.table(block)
        if seen is not None:
            seen.update(dict.fromkeys(table.column_names))
        if columns is not None:
            for name in columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(table.num_rows))
            table = table.select(list(columns))
        yield table


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._first = 0
        self._texts: dict[str, pa.DataType] = {}

    def table(self, block: bytes) -> pa.Table:
        """The lines of one block; Arrow's reader loses what it has no type for, so that values
        of several types, nested ones and long numbers are read line by line."""
        self._expect_shallow(block)
        table = self._by_arrow(block)
        if table is None:
            table = self._by_line(block)
        self._first += block.count(b"\n")
        return table

    def _by_arrow(self, block: bytes) -> pa.Table | None:
        try:
            block.decode("utf-8")
            table = self._inferred(block)
            times = [f.name for f in table.schema if pa.types.is_temporal(f.type)]
            if times:  # Arrow takes texts for times, and they are texts
                self._texts |= dict.fromkeys(times, pa.string())
                table = self._inferred(block)
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        types = [field.type for field in table.schema]
        if len(set(table.column_names)) < len(types) or any(map(pa.types.is_nested, types)):
            return None
        if any(map(pa.types.is_floating, types)) and not floats_are_exact(block):
            return None
        if not _is_one_a_line(block, table.num_rows):
            return None
        return table

    def _inferred(self, block: bytes) -> pa.Table:
        explicit = pa.schema(list(self._texts.items())) if self._texts else None
        return pajson.read_json(
            pa.BufferReader(block),
            read_options=pajson.ReadOptions(block_size=JSON_BLOCK),
            parse_options=pajson.ParseOptions(explicit_schema=explicit),
        )

    def _by_line(self, block: bytes) -> pa.Table:
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(block.split(b"\n"), self._first + 1):
            if not line.strip():
                continue
            try:
                row = parse(line)
            except ValueError as e:
                raise MalformedHistoryError(
                    f"{self._file}:{number}: not JSON: {line[:200]!r}: {e}"
                ) from e
            if not isinstance(row, dict):
                raise MalformedHistoryError(
                    f"{self._file}:{number}: not a JSON object: {line[:200]!r}"
                )
            rows.append(row)
        names = dict.fromkeys(name for row in rows for name in row)
        try:
            return pa.table({name: json_array([row.get(name) for row in rows]) for name in names})
        except UnicodeEncodeError as e:
            raise MalformedHistoryError(f"{self._file}: a column has a name that is no text") from e

    def _expect_shallow(self, block: bytes) -> None:
        """Arrow's reader goes one call deeper for each level, and has no end of its own."""
        opened = block.count(b"{") + block.count(b"[") - block.count(b"\n")
        if opened <= MAX_NESTING:
            return
        for number, line in enumerate(block.split(b"\n"), self._first + 1):
            if line.count(b"{") + line.count(b"[") > MAX_NESTING and nesting(line) > MAX_NESTING:
                raise MalformedHistoryError(
                    f"{self._file}:{number}: nested more than {MAX_NESTING} deep: {line[:100]!r}"
                )


def _is_one_a_line(block: bytes, objects: int) -> bool:
    """Whether each line is one of the objects that Arrow has read: it also takes several on a
    line, and one over several lines. None of them holds another object."""
    block = block.removeprefix(codecs.BOM_UTF8)
    begun = block.count(b"\n{") + block.startswith(b"{")
    if begun == objects == block.count(b"\n") + (not block.endswith(b"\n")):
        return True
    lines = [line for line in map(bytes.lstrip, block.split(b"\n")) if line]
    return len(lines) == objects and all(line.startswith(b"{") for line in lines)


def _line_blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        rest = b""
        while chunk := source.read(JSON_BLOCK):
            whole, line_end, rest_of_chunk = chunk.rpartition(b"\n")
            if not line_end:
                rest += chunk
                if len(rest) > MAX_LINE:
                    raise MalformedHistoryError(
                        f"{file}: a line of more than {MAX_LINE >> 20} MiB: that is no history"
                    )
                continue
            yield rest + whole + b"\n"
            rest = rest_of_chunk
        if rest.strip():
            yield rest
