"""Where a driver wakes amid its successor's operations on the files of a batch: two drivers then
share what is meant for one, such as a file aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

BEGINS = ("open", "begin", "connect")
SHOWS = ("rename", "link", "symlink")
_TRANSACTION = "begin"
_MOST = 12
Operation = tuple[str, str, str]
"""Its step, its kind, and on what kind of file it is."""
_Kind = tuple[str, str, int]


def amid_files(own: Sequence[Operation], following: Sequence[Operation]) -> Iterator[Sequence[str]]:
    """Pairs of steps: before an operation of a batch a driver stands still, and before one of the
    next batch it wakes.

    It stands where it begins to write, and where what it has written becomes visible, once for each
    kind of file; it wakes before the last operation, and before others that make something visible
    or begin a further transaction. Before one that comes earlier in its batch it would find what it
    finds between batches.
    """
    held: dict[_Kind, str] = {}
    for kind, step in _kinds(own):
        if kind[0] in (*BEGINS, *SHOWS):
            held.setdefault(kind, step)
    first: dict[_Kind, int] = {}
    wakes: dict[_Kind, int] = {}
    for place, (kind, _) in enumerate(_kinds(following)):
        first.setdefault(kind, place)
        if kind[0] in SHOWS or (kind[0] == _TRANSACTION and kind[2]):
            wakes[kind] = place
    last = len(following) - 1
    until = dict.fromkeys((last, *(place for place in wakes.values() if place)))
    pairs = (
        (step, following[place][0])
        for place in until
        for kind, step in held.items()
        if place >= first.get(kind, 0)
    )
    return islice(pairs if following else (), _MOST)


def _kinds(operations: Sequence[Operation]) -> Iterator[tuple[_Kind, str]]:
    """What each does, and to what; transactions are told by their number."""
    begun = Counter[str]()
    for step, kind, on in operations:
        yield (kind, on, begun[on] if kind == _TRANSACTION else 0), step
        begun[on] += kind == _TRANSACTION
