"""Where each record stands among those of its group."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
RESIDUE = 16
WORTH = 4


def places(groups: I64, count: int) -> I64:
    """How many records of the same group come before each.

    Where most groups have few records each, rounds are quicker than a sort: the first record of
    each group is found by writing all numbers into a table, backwards; the others stand one place
    further, and are looked at again without it. What is left in the end is sorted.

    Args:
        groups: numbers below ``count``.
    """
    place = np.zeros(len(groups), np.int64)
    table = np.empty(count, np.int32)
    numbers = np.arange(len(groups), dtype=np.int32)
    left, of = numbers, groups
    while len(of) * RESIDUE > len(groups):
        here = numbers[: len(of)]
        table[of[::-1]] = here[::-1]
        later = np.flatnonzero(table[of] != here)
        settled = len(of) - len(later)
        left, of = left[later], of[later]
        place[left] += 1
        if settled * WORTH < len(later):
            break
    order = stable_order(of)
    of = of[order]
    starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]][: len(of)])
    lengths = np.diff(starts, append=len(of))
    place[left[order]] += np.arange(len(of)) - np.repeat(starts, lengths)
    return place


def stable_order(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Indices that sort numbers below 2^32, equal ones in their order: a radix sort."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    high = codes >> 16
    top = int(high.max(initial=0))
    if top:
        small = high.astype(np.uint8 if top < 256 else np.uint16)
        order = order[np.argsort(small[order], kind="stable")]
    return order
