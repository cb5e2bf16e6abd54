"""Where a driver wakes amid a batch of its successor: two drivers then share what is meant for one,
such as a table aside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from bettong.harness.queries.faults.read_only_requests import harmless, meant_to_read
from bettong.harness.queries.faults.wire_fault import in_batch
from bettong.harness.wire import CutPoint, Request
from bettong.harness.wire.cutpoints import same_in_each_run

_ENDS = frozenset({"COMMIT", "EXEC", "EndTxn", "tx.commit"})
"""What ends a transaction; where there is none each request that changes something is one."""


def amid(
    placed: Sequence[tuple[Request, int | None]], pinned: Collection[str], batch: int
) -> Iterator[tuple[Request, CutPoint]]:
    """Requests of a batch at which a driver stands still, each with the one of the next batch at
    which it wakes: of each endpoint the first that changes something, and the first that ends a
    transaction; until the last transaction is about to begin or, where there is one only, to end.
    Once as if a GET of HTTP only read, and once as if it may write.

    ``pinned``: ids of the requests that can be told again.
    """
    for endpoint in dict.fromkeys(request.endpoint for request, _ in placed):
        own, following = (
            [r for r, at in placed if r.endpoint == endpoint and at == n]
            for n in (batch, batch + 1)
        )
        pairs: dict[tuple[Request, Request], None] = {}
        for changes in (_writes, _changes):
            changing = [r for r in own if changes(r) and r.id in pinned]
            until = _last_begins(following, changes)
            if until is not None and until.id in pinned and changing:
                held = (changing[0], *_ends(changing)[:1])
                pairs.update(dict.fromkeys((request, until) for request in held))
        for request, until in pairs:
            name = same_in_each_run(until.label)
            number = sum(
                same_in_each_run(r.label) == name for r in following if r.order <= until.order
            )
            yield request, in_batch("omit", endpoint, until.id, name, number, batch + 1)


def _changes(request: Request) -> bool:
    return not harmless(request.label) and request.reply_size > 0


def _writes(request: Request) -> bool:
    return _changes(request) and not meant_to_read(request.label)


def _ends(changing: Sequence[Request]) -> Sequence[Request]:
    return [r for r in changing if r.label in _ENDS] or changing


def _last_begins(requests: Sequence[Request], changes: Callable[[Request], bool]) -> Request | None:
    """The request with which the last transaction begins; where it is the only one, with which it
    ends."""
    ends = _ends([r for r in requests if changes(r)])
    if len(ends) < 2:
        return ends[0] if ends else None
    return next(r for r in requests if r.order > ends[-2].order)
