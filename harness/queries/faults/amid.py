"""Where a driver wakes amid a batch of its successor: two drivers then share what is meant for one,
such as a table aside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bettong.harness.queries.faults.alike import kind_of, what_is_done
from bettong.harness.queries.faults.read_only_requests import harmless, meant_to_read
from bettong.harness.queries.faults.wake import at_request, in_batch
from bettong.harness.wire import CutPoint, Request
from bettong.harness.wire.cutpoints import same_in_each_run

_ENDS = frozenset({"COMMIT", "EXEC", "EndTxn", "tx.commit"})
"""What ends a transaction; where there is none each request that changes something is one."""
_BEGINS = frozenset({"BEGIN", "MULTI", "tx.select"})
_MOST = 20
_MOST_OF_ONE = 10
_READS = "SELECT"
"""It seldom does more, whatever functions it could call: a sink asks by it whether a batch is done,
and who stands still before that finds that it is."""


def amid(
    placed: Sequence[tuple[Request, int | None]], pinned: Collection[str], batch: int
) -> Iterator[tuple[Request, CutPoint]]:
    """Requests of a batch at which a driver stands still, each with the one of the next batch at
    which it wakes: of each endpoint and each transaction the first that changes something, and
    where the first one ends, until a transaction but the first is about to begin or, where there is
    one only, that ends. Transactions that ask the same are one, and of many pairs those that wake
    last are tried. Once as if a GET of HTTP only read, and once as if it may write.

    ``pinned``: ids of the requests that can be told again.
    """
    for own, following in _at_each_endpoint(placed, batch, batch + 1):
        for request, until in _pinned(own, following, _pairs, pinned):
            name, number = called(until, following)
            yield request, in_batch("omit", until.endpoint, until.id, name, number, batch + 1)


def amid_replay(
    placed: Sequence[tuple[Request, int | None]], pinned: Collection[str], batch: int
) -> Iterator[tuple[Request, CutPoint]]:
    """The same of one batch, each with the request of its replay at which it wakes: of each
    transaction the first that changes something, until a later one begins. What the replay has
    emptied, or found to be empty, is written to once more before it is used. With that batch the
    one that takes over begins, after what it asks before any."""
    for ahead, own in _at_each_endpoint(placed, None, batch):
        for request, until in _pinned(own, own, _pairs_of_one, pinned):
            yield request, at_request("omit", until.endpoint, *called(until, [*ahead, *own]))


_Changes = Callable[[Request], bool]
_Requests = Sequence[Request]
_Pairs = Callable[[_Requests, _Requests, _Changes], Iterable[tuple[Request, Request]]]
_DoneBy = Callable[[Request], object]
_Kind = tuple[object, ...]


def _at_each_endpoint(
    placed: Sequence[tuple[Request, int | None]], *batches: int | None
) -> Iterator[Sequence[list[Request]]]:
    for endpoint in dict.fromkeys(request.endpoint for request, _ in placed):
        at_endpoint = [(r, at) for r, at in placed if r.endpoint == endpoint]
        yield [[r for r, at in at_endpoint if at == n] for n in batches]


def _pinned(
    own: _Requests, among: _Requests, pairs_of: _Pairs, pinned: Collection[str]
) -> Iterable[tuple[Request, Request]]:
    """The pairs of which both can be told again."""
    held = [request for request in own if request.id in pinned]
    return dict.fromkeys(
        (request, until)
        for changes in (_writes, _changes)
        for request, until in pairs_of(held, among, changes)
        if until.id in pinned
    )


def first_changes(requests: Sequence[Request]) -> Iterable[str]:
    """The ids of the first request that changes something of each transaction, once as if a GET of
    HTTP only read, and once as if it may write; transactions that ask the same are one."""
    return dict.fromkeys(
        request.id
        for changes in (_writes, _changes)
        for request in _first(requests, changes, requests)
    )


def called(until: Request, among: _Requests) -> tuple[str, int]:
    """What a request is called in each run, and which one of these that are called so, from 1."""
    name = same_in_each_run(until.label)
    return name, sum(same_in_each_run(r.label) == name for r in among if r.order <= until.order)


def _changes(request: Request) -> bool:
    return not harmless(request.label) and request.reply_size > 0


def _writes(request: Request) -> bool:
    return _changes(request) and not meant_to_read(request.label)


def _pairs(
    own: Sequence[Request], following: Sequence[Request], changes: _Changes
) -> Iterator[tuple[Request, Request]]:
    """What a driver that goes on amid a transaction has left to do is what it had left when that
    began: so it wakes between them only. What it has left may well come earlier in the batch than
    where it wakes, or later: what it tidies up is put aside there, and not used yet."""
    held, wakes = _transactions(own, changes), _transactions(following, changes)
    if not held or not wakes:
        return
    until = wakes[-1].end if len(wakes) == 1 else wakes[-1].begin
    yield held[0].change, until
    yield held[0].end, until

    surely, done_by = _surely(changes), what_is_done([*own, *following])
    held, wakes = _transactions(own, surely, done_by), _transactions(following, surely, done_by)
    starts = [*(t.change for t in _first_of_each(held)), *(t.end for t in held[:1])]
    untils = [t.begin for t in _latest_of_each(wakes) if t is not wakes[0]]
    yield from islice(((start, until) for until in untils for start in starts), _MOST)


def _pairs_of_one(
    own: Sequence[Request], replay: Sequence[Request], changes: _Changes
) -> Iterable[tuple[Request, Request]]:
    starts = list(_first(own, changes, replay))
    found = _transactions(replay, _surely(changes), what_is_done(replay))
    untils = [t.begin for t in _latest_of_each(found)]
    pairs = ((x, until) for until in untils for x in starts if x.order < until.order)
    return islice(pairs, _MOST_OF_ONE)


def _first(requests: _Requests, changes: _Changes, among: _Requests) -> Iterable[Request]:
    """What is a row in a statement, and what is code, is told by all of those among which they
    are."""
    found = _transactions(requests, _surely(changes), what_is_done(among))
    return (transaction.change for transaction in _first_of_each(found))


def _first_of_each(transactions: Sequence[_Transaction]) -> Iterable[_Transaction]:
    """The first transaction of each kind, in their order."""
    first: dict[_Kind, _Transaction] = {}
    for transaction in transactions:
        first.setdefault(transaction.kind, transaction)
    return first.values()


def _latest_of_each(transactions: Sequence[_Transaction]) -> Sequence[_Transaction]:
    """The last transaction of each kind, the last one first."""
    latest = {transaction.kind: transaction for transaction in transactions}
    return sorted(latest.values(), key=lambda transaction: -transaction.begin.order)


def _surely(changes: _Changes) -> _Changes:
    return lambda request: changes(request) and request.label != _READS


@dataclass(frozen=True)
class _Transaction:
    """Requests up to one that makes durable what they have changed.

    Attributes:
        begin: the first of them, which may only read.
        change: the first that changes something.
        end: the last that does.
        kind: what it asks for, the same in each batch and for each row.
    """

    begin: Request
    change: Request
    end: Request
    kind: _Kind


def _transactions(
    requests: Sequence[Request], changes: _Changes, done_by: _DoneBy = kind_of
) -> list[_Transaction]:
    found: list[_Transaction] = []
    since: list[Request] = []

    def end() -> None:
        changed = [r for r in since if changes(r)]
        if changed:
            kind = tuple(dict.fromkeys(map(done_by, changed)))
            found.append(_Transaction(since[0], changed[0], changed[-1], kind))
            since.clear()

    alone = _alone(requests)
    for request in requests:
        since.append(request)
        if request.label in _ENDS or request.id in alone:
            end()
    return found


def _alone(requests: Sequence[Request]) -> set[str]:
    """Requests that belong to no transaction: after the last one, or before one that is begun."""
    alone, waiting = set[str](), set[str]()
    for request in requests:
        if request.label in _ENDS:
            waiting.clear()
        elif request.label in _BEGINS:
            alone |= waiting
            waiting.clear()
        waiting.add(request.id)
    return alone | waiting
