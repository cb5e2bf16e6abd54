"""Which requests of a conversation are alike, so that a few stand for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from bettong.harness.wire import Request

_VALUES = re.compile(r"'(?:[^'\\]|\\.|'')*(?:'|$)|[0-9a-f]*[0-9][0-9a-f]*|…$")
_MOST_SHAPES = 6
_LONGEST = 8
"""So many requests make up what is repeated, at most."""
_OFTEN = 3

Kind = tuple[str, str]


def kind_of(request: Request) -> Kind:
    """Its endpoint, and its label without values: ``PUT /rows/m-000017`` is made of a row."""
    return request.endpoint, shape(request.label)


def shape(text: str) -> str:
    """What a request does, without its values: quoted text, the rest of one that was shortened,
    numbers."""
    return _VALUES.sub("?", text)


def telling(placed: Iterable[tuple[Request, int | None]]) -> Iterator[Request]:
    """The requests that stand for all, given each with its batch.

    Of a batch's requests of one kind that follow each other the first and the last of each shape:
    an insert of many rows is a hundred requests that differ in their row only, while a marker is
    another statement than the rows beside it. And of some that are repeated as a whole, such as an
    insert and a commit for each row, or a connection for each, those of the first and of the last
    time.
    """
    by_place: dict[tuple[str, int | None], list[Request]] = {}
    for request, batch in placed:
        by_place.setdefault((request.endpoint, batch), []).append(request)
    for requests in by_place.values():
        following = (
            list(group) for _, group in groupby(requests, key=lambda r: (r.connection, kind_of(r)))
        )
        yield from _without_repeats([kept for group in following for kept in _ends(group)])


def _ends(members: Sequence[Request]) -> Iterator[Request]:
    """The first and the last of each shape."""
    shapes: dict[str, list[Request]] = {}
    for request in members:
        shapes.setdefault(telling_shape(request), []).append(request)
    if len(shapes) > _MOST_SHAPES:  # what differs is the row after all
        shapes = {"": list(members)}
    for alike in shapes.values():
        yield alike[0]
        if len(alike) > 1:
            yield alike[-1]


def _without_repeats(requests: Sequence[Request]) -> Iterator[Request]:
    """All but those between the first and the last time of what is repeated."""
    ordered = sorted(requests, key=lambda request: request.order)
    shapes: dict[Kind, set[str]] = {}
    for request in ordered:
        shapes.setdefault(kind_of(request), set()).add(telling_shape(request))
    connections = [request.connection for request in ordered]
    symbols = [
        (
            kind_of(r),
            telling_shape(r) if len(shapes[kind_of(r)]) <= _MOST_SHAPES else "",
            r.connection == before,
        )
        for r, before in zip(ordered, connections[-1:] + connections[:-1], strict=True)
    ]
    at = 0
    while at < len(ordered):
        length, times = _repeated(symbols, at)
        end = at + length * times
        yield from ordered[at : at + length]
        if times > 1:
            yield from ordered[end - length : end]
        at = end


def _repeated(symbols: Sequence[object], at: int) -> tuple[int, int]:
    """How long what begins there and is repeated is, and how many times it is there in a row."""
    for length in range(1, _LONGEST + 1):
        once = symbols[at : at + length]
        times = 1
        while symbols[at + length * times : at + length * (times + 1)] == once:
            times += 1
        if times >= _OFTEN:
            return length, times
    return 1, 1


def telling_shape(request: Request) -> str:
    """What it does, without its values, as far as its body or its statement tells that."""
    return request.alike or shape(request.detail)
