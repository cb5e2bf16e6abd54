"""Which requests of a conversation are alike, so that a few stand for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bettong.harness.queries.faults.read_only_requests import harmless
from bettong.harness.wire import Request

_VALUES = re.compile(
    r"'(?:[^'\\]|\\.|'')*(?:'|$)"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]*[0-9][0-9a-f]*|…$"
)
LIST = '?()," '
"""What is left of values that are listed, without them."""
MOST_SHAPES = 6
"""Of more shapes than these what differs is the row, unless they come again in another batch."""
MOST_AGAIN = 24
"""Of more than these, too."""
_LONGEST = 8
"""So many requests make up what is repeated, at most."""
_OFTEN = 3

Kind = tuple[str, str]
Shape = tuple[Kind, str]


def kind_of(request: Request) -> Kind:
    """Its endpoint, and its label without values: ``PUT /rows/m-000017`` is made of a row."""
    return request.endpoint, shape(request.label)


def shape(text: str) -> str:
    """What a request does, without its values: quoted text, the rest of one that was shortened,
    numbers."""
    return _VALUES.sub("?", text)


@dataclass
class Telling:
    """The requests of a conversation at which faults are placed.

    Attributes:
        all: the ids of those that stand for all.
        between: of those after which a driver has done some of many that are alike, and not all:
            it may die there.
    """

    all: set[str] = field(default_factory=set)
    between: set[str] = field(default_factory=set)


def telling(placed: Iterable[tuple[Request, int | None]]) -> Telling:
    """The requests that stand for all, given each with its batch.

    Of a batch's requests of one kind that follow each other the first and the last of each shape:
    an insert of many rows is a hundred requests that differ in their row only, while a marker is
    another statement than the rows beside it. And of some that are repeated as a whole, such as an
    insert and a commit for each row, or a connection for each, those of the first and of the last
    time. Between the first and the last there is the second, or the end of the second time: the
    last request of it that is known to have changed something.
    """
    found = Telling()
    placed = list(placed)
    kinds = {(kind_of(r), telling_shape(r)): set[int | None]() for r, _ in placed}
    for r, batch in placed:
        kinds[kind_of(r), telling_shape(r)].add(batch)
    again = come_again(kinds)
    by_place: dict[tuple[str, int | None], list[Request]] = {}
    for request, batch in placed:
        by_place.setdefault((request.endpoint, batch), []).append(request)
    for requests in by_place.values():
        kept: list[Request] = []
        second: dict[str, str] = {}
        for _, following in groupby(requests, key=lambda r: (r.connection, kind_of(r))):
            for alike in _of_each_shape(list(following), again):
                kept += alike[:1] + alike[1:][-1:]
                second.update((alike[0].id, request.id) for request in alike[1:-1][:1])
        for times in _repetitions(kept, again):
            found.all.update(request.id for time in (times[0], times[-1]) for request in time)
            ends = ([r for r in time if _changes(r)] or time for time in times[1:-1][:1])
            found.between.update(time[-1].id for time in ends)
        found.between.update(second[id] for id in second.keys() & found.all)
    return found


def _changes(request: Request) -> bool:
    return not harmless(request.label) and request.reply_size > 0


def come_again(batches: Mapping[tuple[Kind, str], Collection[object]]) -> Collection[Shape]:
    """The shapes of each kind that come in more than one batch: what they do is the code's, where
    it is not done with a great many of them."""
    found: dict[Kind, list[Shape]] = {}
    for shape_of_kind, seen_in in batches.items():
        if len(seen_in) > 1:
            found.setdefault(shape_of_kind[0], []).append(shape_of_kind)
    return {x for shapes in found.values() if len(shapes) <= MOST_AGAIN for x in shapes}


def _of_each_shape(members: Sequence[Request], again: Collection[Shape]) -> Iterable[list[Request]]:
    """Those that are alike, together; of those that cannot be read, only what has the same sizes
    may be."""
    shapes: dict[object, list[Request]] = {}
    rest: list[Request] = []
    many = len({telling_shape(r) for r in members}) > MOST_SHAPES and not any(map(unread, members))
    for request in members:
        sizes = (request.size, request.reply_size)
        alike = sizes if unread(request) else telling_shape(request)
        if many and (kind_of(request), alike) not in again:
            rest.append(request)  # what differs is the row after all
        else:
            shapes.setdefault(alike, []).append(request)
    return [*shapes.values(), *([rest] if rest else [])]


def _repetitions(
    requests: Sequence[Request], again: Collection[Shape]
) -> Iterator[list[Sequence[Request]]]:
    """The requests in their order, those together that are repeated as a whole: each time. Where
    they cannot be read, only whole connections are known to repeat each other."""
    ordered = sorted(requests, key=lambda request: request.order)
    shape_of = shapes_that_tell(ordered, again)
    connections = [request.connection for request in ordered]
    symbols = [
        (shape_of(r), r.connection == before, r.index if unread(r) else 0)
        for r, before in zip(ordered, connections[-1:] + connections[:-1], strict=True)
    ]
    at = 0
    while at < len(ordered):
        length, times = repeated(symbols, at)
        end = at + length * times
        yield [ordered[begin : begin + length] for begin in range(at, end, length)]
        at = end


def repeated(symbols: Sequence[object], at: int) -> tuple[int, int]:
    """How long what begins there and is repeated is, and how many times it is there in a row."""
    for length in range(1, _LONGEST + 1):
        once = symbols[at : at + length]
        times = 1
        while symbols[at + length * times : at + length * (times + 1)] == once:
            times += 1
        if times >= _OFTEN:
            return length, times
    return 1, 1


def shapes_that_tell(
    requests: Iterable[Request], again: Collection[Shape] = ()
) -> Callable[[Request], Shape]:
    """Gives each of the requests its kind and its shape; where one kind has too many shapes, what
    differs is the row after all, and they have none but where they come ``again``."""
    shapes: dict[Kind, set[str]] = {}
    for request in requests:
        shapes.setdefault(kind_of(request), set()).add(telling_shape(request))

    def shape_of(request: Request) -> Shape:
        kind, told = kind_of(request), telling_shape(request)
        tells = len(shapes[kind]) <= MOST_SHAPES or unread(request) or (kind, told) in again
        return kind, told if tells else ""

    return shape_of


def what_is_done(requests: Iterable[Request]) -> Callable[[Request], tuple[Kind, str]]:
    """The same for requests of several batches: one with more values, or shortened within another
    one of them, does nothing else."""
    shape_of = shapes_that_tell(requests)

    def done_by(request: Request) -> tuple[Kind, str]:
        kind, told = shape_of(request)
        return kind, told.rstrip(LIST)

    return done_by


def telling_shape(request: Request) -> str:
    """What it does, without its values, as far as its body or its statement tells that; how large
    it and its reply are, about, where it cannot be read."""
    if unread(request):
        return f"{request.size.bit_length()} {request.reply_size.bit_length()}"
    return request.alike or shape(request.detail)


def unread(request: Request) -> bool:
    """Whether nothing is known of what it says, as on an encrypted connection: that it is called as
    another one does not make it the same."""
    told = request.detail or request.alike
    return request.keys.own == request.label and request.keys.content is None and not told
