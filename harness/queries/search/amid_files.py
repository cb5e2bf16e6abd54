"""Where a driver wakes amid its successor's operations on the files of a batch: two drivers then
share what is meant for one, such as a file aside."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from bettong.harness.queries.sink.file_steps import STATEMENTS, WRITE

BEGINS = ("open", "begin", "connect")
SHOWS = ("rename", "link", "symlink")
REMOVES = ("remove", "rmdir")
_WRITES = (WRITE, "truncate")
_TRANSACTION = "begin"
_TAKES_UP = (_TRANSACTION, "connect")
"""By these a database is taken up, which what was put aside before may go into."""
_COMMIT = "commit"
_MOST = 20
_MOST_OF_ONE = 10
_MOST_LISTED = 6
Operation = tuple[str, str, str]
"""Its step, its kind, and on what kind of file it is."""
_Kind = tuple[str, str, int]


def begun(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The operations of a batch; the first one on a file that it has not opened, as one that the
    query has opened once, is the one with which it begins to write."""
    known = set[str]()
    for step, kind, on in operations:
        yield step, BEGINS[0] if kind in _WRITES and on not in known else kind, on
        known.add(on)


def amid_files(
    own: Sequence[Operation],
    following: Sequence[Operation],
    lists: Sequence[str] = (),
    reads: Sequence[str] = (),
) -> Iterator[Sequence[str]]:
    """Pairs of steps: before an operation of a batch a driver stands still, and before one of the
    next batch it wakes.

    It stands where :func:`held_at` says; it wakes before the last operation, and before others but
    the first that make something visible or begin a transaction. What it has left to do may come
    earlier in the batch than where it wakes, or later: what it tidies up is put aside there, and
    not used yet. So it wakes also where the next batch reads what it has written itself.

    Where it is about to list a folder it stands too: what it tidies up by that list may be what the
    other one has written and not yet made visible.
    """
    last = len(following) - 1
    wakes = dict.fromkeys((last, *(place for place in _wakes(following) if place)))
    until = (*(following[place][0] for place in wakes if following), *reads)
    pairs = ((step, wake) for wake in until for step in held_at(own))
    shows = [step for step, kind, _ in reversed(following) if kind in SHOWS]
    listed = ((step, show) for show in shows for step in lists)
    return chain(islice(pairs, _MOST), islice(listed, _MOST_LISTED))


def amid_replay(own: Sequence[Operation]) -> Iterator[Sequence[str]]:
    """The same of one batch, before a later operation of which its replay wakes the driver that
    stands still: what the replay has emptied, or found to be empty, is written to once more before
    it is used. Before one that comes earlier the other of the two is as far as this one is here;
    before a commit the replay has locked what it is to be hit in.
    """
    places = {step: place for place, (step, _, _) in enumerate(own)}
    last = (place for place, (_, kind, _) in enumerate(own) if kind != _COMMIT)
    until = dict.fromkeys((*_wakes(own), *deque(last, 1)))
    pairs = (
        (step, own[place][0]) for place in until for step in held_at(own) if place > places[step]
    )
    return islice(pairs, _MOST_OF_ONE)


def held_at(own: Sequence[Operation]) -> Iterable[str]:
    """Where a driver stands still: where it begins to write, where what it has written becomes
    visible, and where it removes what it needs no longer, once for each kind of file."""
    held: dict[_Kind, str] = {}
    for kind, step in _kinds(own):
        if kind[0] in (*BEGINS, *SHOWS, *REMOVES, *STATEMENTS):
            held.setdefault(kind, step)
    return held.values()


def _wakes(following: Sequence[Operation]) -> Iterable[int]:
    """The places of what makes something visible, begins a transaction, or is one by itself; of
    each kind the last."""
    wakes: dict[_Kind, int] = {}
    for place, (kind, _) in enumerate(_kinds(following)):
        if kind[0] in (*SHOWS, *STATEMENTS, *_TAKES_UP):
            wakes[kind] = place
    return wakes.values()


def _kinds(operations: Sequence[Operation]) -> Iterator[tuple[_Kind, str]]:
    """What each does, and to what; transactions are told by their number."""
    begun = Counter[str]()
    for step, kind, on in operations:
        yield (kind, on, begun[on] if kind == _TRANSACTION else 0), step
        begun[on] += kind == _TRANSACTION
