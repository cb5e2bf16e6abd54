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
import pyarrow.compute as pc

from bettong.harness.stored.hashing import U64, hash_column, mix
from bettong.lineage.errors import UsageError

I64 = npt.NDArray[np.int64]
SLICES = 1 << 16
MAX_KEYS = 8_000_000
_PLACE = np.uint64(0xD6E8FEB86659FD93)
_CONTENT = np.uint64(0xA0761D6478BD642F)


class KeyCodes:
    """Small numbers for keys, in the order in which they are met; null is 0."""

    def __init__(self) -> None:
        self._known = pa.array([None], pa.string())

    def __len__(self) -> int:
        return len(self._known)

    def codes(self, keys: pa.Array) -> I64:
        """The code of each key; raises UsageError beyond MAX_KEYS keys."""
        if pa.types.is_dictionary(keys.type):
            coded = self._codes(_as_text(keys.dictionary))
            if keys.null_count:
                coded = np.append(coded, 0)
                keys = keys.indices.fill_null(len(coded) - 1)
            else:
                keys = keys.indices
            codes: I64 = coded[keys.to_numpy(zero_copy_only=False)]
            return codes
        return self._codes(_as_text(keys))

    def _codes(self, keys: pa.Array) -> I64:
        found = pc.index_in(keys, value_set=self._known)
        if found.null_count:
            new = pc.unique(keys.filter(found.is_null()))
            self._known = pa.concat_arrays([self._known, new])
            if len(self) > MAX_KEYS:
                raise UsageError(
                    f"more than {MAX_KEYS:,} different keys: check with --spark MASTER, or "
                    "without order with --ordering none"
                )
            found = pc.index_in(keys, value_set=self._known)
        codes: I64 = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


def _as_text(keys: pa.Array) -> pa.Array:
    return keys if keys.type == pa.string() else keys.cast(pa.string())


@dataclass(slots=True)
class Digests:
    """Digest, number of records, first and last rank of each group of one history."""

    ordered: bool
    sums: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    counts: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    first: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    last: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    unsorted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    rows: int = 0

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        more = groups - len(self.sums)
        if more > 0:
            self.sums = np.append(self.sums, np.zeros(more, np.uint64))
            self.counts = np.append(self.counts, np.zeros(more, np.int64))
            self.first = np.append(self.first, np.full(more, np.iinfo(np.int64).max))
            self.last = np.append(self.last, np.full(more, np.iinfo(np.int64).min))
            self.unsorted = np.append(self.unsorted, np.zeros(more, np.bool_))

    def add(self, records: U64, groups: I64, rank: I64) -> None:
        """Add the next records.

        Args:
            records: a hash of each record's id and compared content.
            groups: its group; group 0 has no order.
            rank: the order within a group; one whose ranks go back is marked as unsorted.
        """
        self.rows += len(groups)
        if len(groups) == 0:
            return
        if not self.ordered:
            np.add.at(self.sums, groups, mix(records.copy()))
            self.counts += np.bincount(groups, minlength=len(self.counts))
            np.minimum.at(self.first, groups, rank)
            np.maximum.at(self.last, groups, rank)
            return
        order = stable_order(groups)
        ordered = groups[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        present = ordered[starts]
        counts = np.diff(np.r_[starts, len(ordered)])
        place = np.arange(len(ordered)) + np.repeat(self.counts[present] - starts, counts)
        if present[0] == 0:
            place[: counts[0]] = 0
        words = mix(records[order] + place.view(np.uint64) * _PLACE)
        self.sums[present] += np.add.reduceat(words, starts)
        rank = rank[order]
        back = np.r_[False, rank[1:] < rank[:-1]]
        back[starts] = rank[starts] < self.last[present]
        self.unsorted[present] |= np.logical_or.reduceat(back, starts)
        self.first[present] = np.minimum(self.first[present], rank[starts])
        self.last[present] = np.maximum(self.last[present], rank[starts + counts - 1])
        self.counts[present] += counts


def stable_order(codes: I64) -> I64:
    """Indices that sort small non-negative numbers, equal ones in their order: a radix sort."""
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    high = (codes >> 16).astype(np.uint16)
    if high.any():
        order = order[np.argsort(high[order], kind="stable")]
    return order


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
