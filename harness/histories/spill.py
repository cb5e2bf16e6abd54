"""Rows in buckets, in memory as far as a limit allows and then in files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]


class Buckets:
    """Rows of one type, each in one of ``count`` (at most 256) buckets, kept in the order added.

    Args:
        directory: where files go when the rows take more than ``limit`` bytes.
    """

    def __init__(self, count: int, dtype: Any, directory: Path, limit: int, name: str) -> None:
        self._dtype = np.dtype(dtype)
        self._pieces: list[list[Rows]] = [[] for _ in range(count)]
        self._files = [directory / f"{name}-{i}" for i in range(count)]
        self._limit, self._held = limit, 0
        self.rows = 0

    def add(self, rows: Rows, which: npt.NDArray[Any]) -> None:
        """Put each row into its bucket."""
        small = which.astype(np.uint8)
        rows = rows[np.argsort(small, kind="stable")]
        ends = np.cumsum(np.bincount(small, minlength=len(self._pieces)))
        for pieces, start, end in zip(self._pieces, [0, *ends[:-1]], ends, strict=True):
            if end > start:
                pieces.append(rows[start:end])
        self.rows += len(rows)
        self._held += rows.nbytes
        if self._held > self._limit:
            self._flush()

    def _flush(self) -> None:
        for pieces, path in zip(self._pieces, self._files, strict=True):
            if pieces:
                with path.open("ab") as file:
                    for piece in pieces:
                        piece.tofile(file)
                pieces.clear()
        self._held = 0

    def __iter__(self) -> Iterator[Rows]:
        """Each bucket in turn; what it held is given up."""
        for pieces, path in zip(self._pieces, self._files, strict=True):
            parts = [*([np.fromfile(path, self._dtype)] if path.exists() else []), *pieces]
            pieces.clear()
            path.unlink(missing_ok=True)
            yield np.concatenate(parts) if parts else np.empty(0, self._dtype)


class Log:
    """Columns of numbers that are written once and read again in the same pieces.

    They go to files, which the system keeps in memory as far as there is room.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self._columns: list[tuple[str, Any]] = []
        self._lengths: list[int] = []

    def add(self, **columns: Rows) -> None:
        """Append a piece; each has the same columns."""
        self._columns = [(name, values.dtype) for name, values in columns.items()]
        self._lengths.append(len(next(iter(columns.values()))))
        for name, values in columns.items():
            with self._path(name).open("ab") as file:
                values.tofile(file)

    def __iter__(self) -> Iterator[dict[str, Rows]]:
        with contextlib.ExitStack() as stack:
            files = [
                (name, dtype, stack.enter_context(self._path(name).open("rb")))
                for name, dtype in self._columns
            ]
            for length in self._lengths:
                yield {name: np.fromfile(file, dtype, length) for name, dtype, file in files}

    def _path(self, name: str) -> Path:
        return self._directory / f"{self._name}.{name}"


def repeated(buckets: Buckets) -> npt.NDArray[np.uint64]:
    """Words that are more than once in 256 buckets of 64-bit words split by their high bits.

    Each word writes its number into a slot that equal words share: one whose number was written
    over is compared with the word that did it. Of those that only share the slot, the ones written
    over go on among themselves, with other slots.
    """
    found = [np.empty(0, np.uint64)]
    for words in buckets:
        turn = 0
        while len(words):
            bits = (4 * len(words)).bit_length()
            slots = (words << np.uint64(8) + np.uint64(7 * turn)) >> np.uint64(64 - bits)
            numbers = np.arange(len(words), dtype=np.int32)
            table = np.empty(1 << bits, np.int32)
            table[slots] = numbers
            last = table[slots]
            over = np.flatnonzero(last != numbers)
            same = words[over] == words[last[over]]
            found.append(words[over[same]])
            words, turn = words[over[~same]], (turn + 1) % 4
    return np.unique(np.concatenate(found))
