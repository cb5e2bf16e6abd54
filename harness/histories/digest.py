"""First pass: a digest of each group of records, to find the groups that differ.

A group is a key, or without keys a slice of the ids. The digest of a group sums one scrambled
word for each record, made of its id, its compared content and, where order counts, its place in
the group. Groups with equal digests and counts hold the same records in the same order (but for
a chance of 2^-64 each); only the others are looked at record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bettong.harness.histories.hashing import U64, hash_column, mix
from bettong.harness.histories.places import places, stable_order
from bettong.lineage.errors import UsageError

I64 = npt.NDArray[np.int64]
SLICES = 1 << 16
MAX_KEYS = 8_000_000
_PLACE = np.uint64(0xD6E8FEB86659FD93)
_CONTENT = np.uint64(0xA0761D6478BD642F)


class KeyCodes:
    """Small numbers for keys, by their hashes, in an open-addressing table; null is 0.

    Each round looks at one slot for all keys at once; what it does not settle goes to the next.
    """

    def __init__(self) -> None:
        self._bits = 16
        self._words = hash_column(pa.nulls(1))
        self._slots = np.zeros(1 << self._bits, np.int32)
        self._insert(1)

    def __len__(self) -> int:
        return len(self._words)

    def codes(self, keys: pa.Array) -> I64:
        """The code of each key; raises UsageError beyond MAX_KEYS keys."""
        words = hash_column(keys)
        found = self._find(words)
        unknown = found == 0
        if unknown.any():
            new = np.unique(words[unknown])
            known = len(self)
            if known + len(new) > MAX_KEYS:
                raise UsageError(
                    f"more than {MAX_KEYS:,} different keys: check with --spark MASTER, or "
                    "without order with --ordering none"
                )
            self._words = np.append(self._words, new)
            if len(self) * 4 > len(self._slots):
                while len(self) * 4 > 1 << self._bits:
                    self._bits += 1
                self._slots = np.zeros(1 << self._bits, np.int32)
                known = 0
            self._insert(len(self) - known)
            found = self._find(words)
        codes: I64 = found.astype(np.int64) - 1
        return codes

    def _slot(self, words: U64) -> I64:
        slots: I64 = (words >> np.uint64(64 - self._bits)).astype(np.int64)
        return slots

    def _find(self, words: U64) -> npt.NDArray[np.int32]:
        """One more than the code, or 0 for keys that are not known."""
        slots = self._slot(words)
        found: npt.NDArray[np.int32] = self._slots[slots]
        wrong = np.flatnonzero((self._words[found - 1] != words) & (found > 0))
        while len(wrong):
            slots[wrong] = (slots[wrong] + 1) & (len(self._slots) - 1)
            found[wrong] = self._slots[slots[wrong]]
            right = (found[wrong] == 0) | (self._words[found[wrong] - 1] == words[wrong])
            wrong = wrong[~right]
        return found

    def _insert(self, newest: int) -> None:
        codes = np.arange(len(self) - newest, len(self))
        slots = self._slot(self._words[codes])
        while len(codes):
            free = np.flatnonzero(self._slots[slots] == 0)
            self._slots[slots[free]] = codes[free] + 1  # of several, the last one stays
            left = self._slots[slots] != codes + 1
            codes, slots = codes[left], (slots[left] + 1) & (len(self._slots) - 1)


@dataclass(slots=True)
class Digests:
    """Digest and number of records of each group of one history, and its last rank if told."""

    ordered: bool
    sums: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    counts: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    last: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    unsorted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    rows: int = 0

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        more = groups - len(self.sums)
        if more > 0:
            self.sums = np.append(self.sums, np.zeros(more, np.uint64))
            self.counts = np.append(self.counts, np.zeros(more, np.int64))
            self.last = np.append(self.last, np.full(more, np.iinfo(np.int64).min))
            self.unsorted = np.append(self.unsorted, np.zeros(more, np.bool_))

    def add(self, records: U64, groups: I64, rank: I64 | None) -> None:
        """Add the next records.

        Args:
            records: a hash of each record's id and compared content.
            groups: its group; group 0 has no order.
            rank: the order within a group, when it is not the order of the records; a group whose
                ranks go back is marked as unsorted.
        """
        self.rows += len(groups)
        if len(groups) == 0:
            return
        words = records.copy()
        if self.ordered:
            place = places(groups, len(self.sums))
            place += self.counts[groups]
            place[groups == 0] = 0
            words += place.view(np.uint64) * _PLACE
        np.add.at(self.sums, groups, mix(words))
        self.counts += np.bincount(groups, minlength=len(self.counts))
        if rank is not None and self.ordered:
            self._see_ranks(rank, groups)

    def _see_ranks(self, rank: I64, groups: I64) -> None:
        order = stable_order(groups)
        rank, groups = rank[order], groups[order]
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        ends = np.append(starts[1:], len(groups)) - 1
        present = groups[starts]
        back = np.r_[False, rank[1:] < rank[:-1]]
        back[starts] = rank[starts] < self.last[present]
        self.unsorted[present] |= np.logical_or.reduceat(back, starts)
        self.last[present] = np.maximum(self.last[present], rank[ends])


def record_hashes(ids: U64, contents: Sequence[pa.Array]) -> U64:
    """One word for each record from the hash of its id and its compared columns."""
    words = ids
    for column in contents:
        words = mix(words * _CONTENT + hash_column(column))
    return words


def id_slices(ids: U64) -> I64:
    """The group of each record when order does not count: never 0."""
    slices: I64 = (ids >> np.uint64(48)).astype(np.int64) + 1
    return slices
