"""Stored histories: JSON lines, Parquet and Arrow files, read in batches of bounded size."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bettong.harness.histories.json_lines import json_tables
from bettong.harness.histories.malformed import MalformedHistoryError
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import did_you_mean

BATCH_ROWS = 1 << 18
READ_AHEAD = 1 << 20
SUFFIXES = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """Files of one history, in the order in which they are read.

    Raises UsageError when there is none, or one whose kind its suffix does not tell.

    Attributes:
        partitions: what the names of its folders say, such as ``day`` of ``day=1``.
        seen: names of columns, as far as they are known; of JSON all are when all lines were read.
    """

    name: str
    files: tuple[Path, ...]
    partitions: tuple[str, ...] = ()
    seen: dict[str, None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def at(cls, path: Path, name: str) -> StoredHistory:
        """The file, or all files of a directory in the order of their names; left out are those
        hidden from every reader, such as ``_SUCCESS`` and what is in ``_temporary``."""
        partitions: tuple[str, ...] = ()
        if path.is_dir():
            inside = sorted(path.rglob("*"))
            seen = [f for f in inside if not any(map(_hidden, f.relative_to(path).parts))]
            files = tuple(f for f in seen if f.is_file())
            for other in seen:
                if not other.is_file() and (other.is_symlink() or not other.is_dir()):
                    raise UsageError(
                        f"{other}: no file, and no folder but a link to one perhaps: it would be "
                        "passed over; put the files themselves there, or take it out"
                    )
            folders = (f.name.partition("=") for f in seen if f.is_dir())
            partitions = tuple(dict.fromkeys(name for name, equals, _ in folders if equals))
        else:
            files = (path,)
        if not path.exists() or not files:
            raise UsageError(f"{path}: no such file, or no file of a known kind in it")
        for file in files:
            if file.suffix not in SUFFIXES:
                known = ", ".join(SUFFIXES)
                raise UsageError(
                    f"{file}: not a history that can be read; its name ends in {known}"
                    + (": convert it, or take it out of the folder" if path.is_dir() else "")
                )
        return cls(name, files, partitions)

    def by_name(self) -> str | None:
        """Says in which order its files are read, where there are several; names two whose numbers
        are not in the order of their names."""
        if len(self.files) < 2:
            return None
        said = f"the {len(self.files)} files of {self.name} are read in the order of their names"
        for one, other in pairwise(self.files):
            if _numbered(other) < _numbered(one):
                return f"{said}, {one.name} before {other.name}"
        return said

    def columns(self) -> list[str]:
        """Names of the columns of all files, and of all lines that were read; none where nothing
        can be read, which whoever reads the records reports."""
        if not self.seen:
            for file in self.files:
                with contextlib.suppress(MalformedHistoryError):
                    names = self._columns(file)
                    if twice := [name for name, times in Counter(names).items() if times > 1]:
                        raise UsageError(
                            f"{file}: several columns are called {twice[0]}: rename all but one"
                        )
                    self.seen.update(dict.fromkeys(names))
        return list(self.seen)

    def _columns(self, file: Path) -> list[str]:
        with self._named(file):
            match SUFFIXES[file.suffix]:
                case "parquet":
                    return list(pq.read_schema(file).names)
                case "stream":
                    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
                        return list(stream.schema.names)
                case "arrow":
                    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as whole:
                        return list(whole.schema.names)
                case _:
                    first = next(json_tables(file, None), None)
                    return [] if first is None else list(first.column_names)

    def require(self, column: str, option: str) -> None:
        """Raise UsageError, with the nearest name, when there is no such column."""
        names = self.columns()
        if names and column not in names:
            hint = did_you_mean(column, names) or f"it has {', '.join(names)}"
            where = self.files[0] if len(self.files) == 1 else f"the files of {self.name}"
            raise UsageError(f"{option} {column}: no such column in {where}; {hint}")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of at most BATCH_ROWS rows with these columns, in order.

        Raises MalformedHistoryError, naming file and line or the file, for what is unreadable.
        """
        for file in self.files:
            yield from self._read(file, columns)

    def rows_at(self, columns: Sequence[str], places: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The records at these places (ascending); of Parquet only their row groups are read."""
        wanted = np.array(places, np.int64)
        start = 0
        for file in self.files:
            if not len(wanted) or start > wanted[-1]:
                return
            for batch in self._near(file, columns, wanted - start):
                if isinstance(batch, int):
                    start += batch
                    continue
                end = start + batch.num_rows
                inside = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)]
                with self._named(file):
                    yield from batch.take(pa.array(inside - start)).to_pylist()
                start = end

    def _near(
        self, file: Path, columns: Sequence[str], wanted: npt.NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch | int]:
        """Batches, and numbers of rows where none is wanted."""
        if SUFFIXES[file.suffix] != "parquet":
            yield from self._read(file, columns)
            return
        with pq.ParquetFile(file) as source:
            start = 0
            for number in range(source.num_row_groups):
                end = start + source.metadata.row_group(number).num_rows
                if np.searchsorted(wanted, start) == np.searchsorted(wanted, end):
                    yield end - start
                else:
                    for batch in source.iter_batches(
                        BATCH_ROWS, row_groups=[number], columns=list(columns)
                    ):
                        yield _select(batch, columns)
                start = end

    def _read(self, file: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        with self._named(file):
            match SUFFIXES[file.suffix]:
                case "parquet":
                    yield from _parquet(file, columns)
                case "json":
                    yield from _json(file, columns, self.seen)
                case "stream":
                    with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
                        for batch in stream:
                            yield from _slices(_select(batch, columns))
                case _:
                    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as stream:
                        for number in range(stream.num_record_batches):
                            yield from _slices(_select(stream.get_batch(number), columns))

    @contextlib.contextmanager
    def _named(self, file: Path) -> Iterator[None]:
        """Names the file in errors of what it holds."""
        try:
            yield
        except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as e:
            raise MalformedHistoryError(f"{self.name}: {file} cannot be read: {e}") from e


def _numbered(path: Path) -> list[tuple[int, str]]:
    """A path in the order of the numbers in its name, 9 before 10, as they were given perhaps."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if n % 2 else (0, part) for n, part in enumerate(parts)]


def _hidden(name: str) -> bool:
    """Whether Spark and its like pass over a file or folder; ``_day=1`` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _select(batch: pa.RecordBatch, columns: Sequence[str] | None) -> pa.RecordBatch:
    """These columns; one that the batch lacks is empty, as it is where lines of JSON lack it."""
    if columns is None:
        return batch
    absent = [name for name in columns if name not in batch.schema.names]
    if absent and batch.num_columns == 0:
        raise pa.ArrowInvalid(f"it has none of the columns {', '.join(columns)}")
    for name in absent:
        batch = batch.append_column(name, pa.nulls(batch.num_rows))
    return batch.select(list(columns))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _parquet(file: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    plain = pq.ParquetFile(file)
    coded = [n for n in plain.schema_arrow.names if _is_dictionary_coded(plain, n)]
    options = {"pre_buffer": False, "buffer_size": READ_AHEAD}
    with pq.ParquetFile(file, read_dictionary=coded, **options) as source:
        for batch in source.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            yield _select(batch, columns)


def _is_dictionary_coded(file: pq.ParquetFile, name: str) -> bool:
    """Whether a text column is stored as codes: then they are read as they are, which is faster."""
    kind = file.schema_arrow.field(name).type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)) or file.num_row_groups == 0:
        return False
    group = file.metadata.row_group(0)
    for i in range(group.num_columns):
        column = group.column(i)
        if column.path_in_schema == name:
            coded = column.total_uncompressed_size < 5 * column.num_values
            return coded and "RLE_DICTIONARY" in column.encodings
    return False


def _json(
    file: Path, columns: Sequence[str] | None, seen: dict[str, None]
) -> Iterator[pa.RecordBatch]:
    for table in json_tables(file, columns, seen):
        yield from table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
