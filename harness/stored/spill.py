"""Rows in buckets, in memory as far as a limit allows and then in files."""

from __future__ import annotations

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


def repeated(buckets: Buckets) -> npt.NDArray[np.uint64]:
    """Words that are more than once in buckets of 64-bit words split by their high bits."""
    found = [np.empty(0, np.uint64)]
    for words in buckets:
        words.sort()
        found.append(np.unique(words[1:][words[1:] == words[:-1]]))
    return np.concatenate(found)
