"""Faults on the wire: at which requests of the clean runs' conversations they are placed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.alike import (
    Kind,
    Shape,
    kind_of,
    telling,
    telling_shape,
    what_is_done,
)
from bettong.harness.queries.faults.amid import amid, amid_replay
from bettong.harness.queries.faults.crash_points import DURABLE
from bettong.harness.queries.faults.read_only_requests import (
    asks,
    harmless,
    meant_to_read,
    safe_in_http,
)
from bettong.harness.queries.faults.wake import WakeAtRequest, in_batch
from bettong.harness.queries.faults.wire_fault import How, WireFault
from bettong.harness.wire import CutPoint, CutPoints, Keys, Recording, Request, cut_points
from bettong.harness.wire.cutpoints import names_of, possible
from bettong.lineage.trace import TraceEvent

CLOCK = "clock"
"""In an event's detail: the wire's logical time when it arrived."""

_Place = tuple[str, str, int]
"""An endpoint, a name of requests, a batch."""
_Look = tuple[str, int, tuple[Kind, str]]
"""An endpoint, a batch, what is asked for."""
_MOST_LOOKS = 6
_REFUSED: tuple[How, ...] = ("unavailable", "always unavailable", "silent")
"""What becomes of a request of HTTP that is not carried out, besides its loss."""
_TOO_SMALL = 64  # bytes; half of such a frame is never acted on


@dataclass(frozen=True, slots=True)
class WirePoint:
    """A request that may be hit.

    Attributes:
        faults: each with what is equal for all that leave the same behind.
        batch: in which the request is made.
        order: the wire's logical time.
    """

    batch: int
    faults: tuple[tuple[WireFault, str], ...]
    order: int


def request_digest(requests: Iterable[tuple[str, str, Keys | None]], run: str) -> str:
    """A digest of what servers have been sent: endpoint, label and keys of each request, in order.

    Where a protocol does not show the content of its requests it holds within this run only.
    """
    digest, known = hashlib.sha256(), True
    for endpoint, label, keys in requests:
        if keys is not None and not harmless(label):
            known = known and keys.content is not None
            digest.update(f"{endpoint}\0{label}\0{keys.own}\n".encode())
    return digest.hexdigest()[:24] + ("" if known else f" {run}")


def wire_points(
    clean: Recording,
    pinned: Iterable[CutPoint],
    events: Sequence[TraceEvent],
    window: int,
    run: str,
    servers: Iterable[str] = (),
    tail: Collection[int] = (),
    started: int = 0,
) -> list[WirePoint]:
    """The places for faults on the wire within the first ``window`` batches: in the last of them,
    and in the others at requests that do what none of the last one does, such as those that make
    a table or write to one that is written to once only: these may be lost, or late. Those of the
    batches of the ``tail`` are hit as those of the last one are. In the first of these that asks
    for anything, and so does the batch after it, a driver that stands still may wake amid the
    latter. Requests of HTTP are turned away as well, or lost without a word; others are lost so
    where a server stands still. The last one of each kind is refused with an error of its protocol.

    Of a batch's requests that are alike those of :func:`~.alike.telling` stand for all; between
    the first and the last of many a driver dies once.
    ``clean``: the run; ``pinned``: its requests that another clean run makes equally.
    ``servers``: endpoints whose servers are ours to restart; that is done, and any server stands
    still, at the last request of the batches that can change something, and at the last GET of
    HTTP, or, where no reply to that is due, at the next one that is replied to: whoever has seen
    that goes on. On each connection to an endpoint, ours or not, the last request of the last batch
    may be slow as well, while nobody waits for it: whoever asks more has had the reply. Of those
    that are alike that is the first and the last: where several are on their way at once the others
    arrive meanwhile.
    ``started``: the wire's logical time when the query was started; what was asked before, such as
    for an empty target, is not asked again when it is started again.
    """
    by_request: dict[str, list[CutPoint]] = {}
    for point in pinned:
        by_request.setdefault(point.request, []).append(point)
    reported: list[tuple[str, str, Keys | None]] = []
    found: list[WirePoint] = []
    last: dict[tuple[str, bool, bool], tuple[Request, int, list[CutPoint]]] = {}
    ends: dict[tuple[str, int, bool], tuple[Request, int, list[CutPoint]]] = {}
    refused: dict[tuple[str, tuple[Kind, str]], tuple[Request, int, list[CutPoint]]] = {}
    unreplied: set[str] = set()
    begun: set[tuple[str, int]] = set()
    looks: dict[_Look, tuple[Request, list[CutPoint]]] = {}
    placed = [(request, batch_at(request.order, events)) for request in clean.requests]
    what = what_is_done(clean.requests)
    known = {what(r) for r, batch in placed if batch == window - 1}
    told = telling(placed)
    http = {(t.endpoint, t.number) for t in clean.conversations if t.protocol == "http"}
    for request, batch in placed:
        before = request_digest(reported, run)
        reported.append((request.endpoint, request.label, request.keys))
        if batch is None or request.id not in by_request:
            continue
        later = batch in tail
        if not later and (batch >= window or (batch < window - 1 and what(request) in known)):
            continue
        points = by_request[request.id]
        in_full = later or batch == window - 1
        if not harmless(request.label) and not request.reply_size:
            unreplied.add(request.endpoint)
        elif changes(request) or (request.reply_size and request.endpoint in unreplied):
            unreplied.discard(request.endpoint)
            last[request.endpoint, later, meant_to_read(request.label)] = (request, batch, points)
        if in_full and not harmless(request.label):
            ends[request.endpoint, request.connection, later] = (request, batch, points)
        if in_full and asks(request.label) and (request.endpoint, batch) in begun:
            asked = (request.endpoint, batch, what(request))
            looks.pop(asked, None)  # the last one counts, in its place
            looks[asked] = (request, points)
        begun.add((request.endpoint, batch))
        if in_full and request.refusable and changes(request):
            met = request.endpoint, what(request)
            if met not in refused or refused[met][1] == batch:
                refused[met] = (request, batch, points)  # the last one counts
        if request.id in told.all:
            files, after = files_at(request.order, events), request_digest(reported, run)
            faults = tuple(_faults(request, points, f"{files} {before}", f"{files} {after}"))
            if changes(request):
                arrives_late = [p for p in points if p.kind == "omit"]
                if in_full:
                    faults += tuple(_own(WireFault(p, "always lost")) for p in arrives_late)
                faults += tuple(_own(WireFault(p, "late")) for p in arrives_late)
            if in_full and (request.endpoint, request.connection) in http:
                never = [p for p in points if p.kind == "omit"]
                for how in _REFUSED:
                    faults += tuple(_own(WireFault(p, how)) for p in never)
                if changes(request):
                    replied = [p for p in points if p.kind == "omit-reply"]
                    faults += tuple(_own(WireFault(p, "timed out")) for p in replied)
            found.append(WirePoint(batch, faults, request.order))
        elif request.id in told.between and not harmless(request.label):
            kind, sent = ("omit-reply", reported) if request.reply_size else ("omit", reported[:-1])
            left = f"{files_at(request.order, events)} {request_digest(sent, run)}"
            done = [WireFault(p, "crash") for p in points if p.kind == kind]
            found.append(WirePoint(batch, tuple((f, left) for f in done), request.order))
    found += _late_looks(looks)
    for request, batch, points in refused.values():
        of_it = [replace(p, kind="refuse") for p in points if p.kind == "omit"]
        faults = tuple(_own(WireFault(p, "refused")) for p in of_it)
        found.append(WirePoint(batch, faults, request.order))
    ours = set(servers)
    for request, batch, points in last.values():
        told_of = (request.endpoint, request.connection) in http and request.id in told.all
        of_server = tuple(_of_the_server(points, request.endpoint in ours, told_of))
        found.append(WirePoint(batch, of_server, request.order))
    latest_first = sorted(ends.values(), key=lambda end: -end[1])
    by_query = [(request, batch) for request, batch in placed if request.order > started]
    for pairs_at in (amid_replay, amid):
        for at in (window - 1, *sorted(tail)):
            for request, until in (woken := list(pairs_at(by_query, by_request, at))):
                held = (p for p in by_request[request.id] if p.kind == "omit")
                faults = tuple(_own(WireFault(p, "amid", WakeAtRequest(until))) for p in held)
                found.append(WirePoint(at, faults, request.order))
            if woken:
                break
    by_shape: dict[Shape, list[tuple[Request, int, list[CutPoint]]]] = {}
    for end in latest_first:
        by_shape.setdefault((kind_of(end[0]), telling_shape(end[0])), []).append(end)
    for ends_alike in by_shape.values():
        alike = [end for end in ends_alike if end[1] == ends_alike[-1][1]]
        for request, batch, points in alike[:1] + alike[1:][-1:]:
            slow = tuple(_own(WireFault(p, "unawaited")) for p in points if p.kind == "omit")
            found.append(WirePoint(batch, slow, request.order))
    return found


def placeable(
    first: Recording,
    events: Sequence[TraceEvent],
    second: Recording,
    its_events: Sequence[TraceEvent],
) -> CutPoints:
    """Every point of the first clean run that the second one had as well. Where one asked once
    more than the other, such as a client of a server that was not quite ready, what comes after
    that is told within its batch."""
    found = cut_points(first, second)
    if not found.unpinned:
        return found
    left = {request.id for request in found.unpinned}
    asked = _in_batches(second, its_events)
    ours = _in_batches(first, events)
    counts = Counter[_Place]()
    points, unpinned = list(found.points), []
    for request in first.requests:
        batch = batch_at(request.order, events)
        if batch is None:
            unpinned += [request] if request.id in left else []
            continue
        places = [(request.endpoint, name, batch) for name in names_of(request.label)]
        counts.update(set(places))
        if request.id not in left:
            continue
        own, *wider = places
        fits = [own] if counts[own] <= asked[own] else []
        fits += [place for place in wider if ours[place] == asked[place]]
        if not fits:
            unpinned.append(request)
            continue
        points += [
            in_batch(kind, request.endpoint, request.id, fits[0][1], counts[fits[0]], batch)
            for kind in possible(request)
        ]
    return CutPoints(tuple(points), tuple(unpinned))


def _in_batches(recording: Recording, events: Sequence[TraceEvent]) -> Counter[_Place]:
    """How many requests of each name there are in each batch."""
    counts = Counter[_Place]()
    for request in recording.requests:
        if (batch := batch_at(request.order, events)) is not None:
            names = dict.fromkeys(names_of(request.label))
            counts.update((request.endpoint, name, batch) for name in names)
    return counts


def not_placeable(
    unpinned: Iterable[Request],
    events: Sequence[TraceEvent],
    window: int,
    tail: Collection[int] = (),
) -> list[str]:
    """Ids of the requests of the first ``window`` batches, and those of the ``tail``, that are not
    pinned: no fault can be placed there exactly."""
    hit = {*range(window), *tail}
    return [request.id for request in unpinned if batch_at(request.order, events) in hit]


def taken_for_granted(wire: Iterable[WirePoint]) -> list[str]:
    """What a verdict supposes of the servers that were asked, a sentence each."""
    faults = [fault for point in wire for fault, _ in point.faults]
    asked = {fault.point.endpoint for fault in faults}
    spared = sorted(asked - {x.point.endpoint for x in faults if x.how == "restarted"})
    supposed = []
    if asked:
        supposed.append(
            "what a server keeps for a time only (a key that expires, a window for duplicates) "
            "outlives every outage"
        )
    safe = sorted({fault.point.endpoint for fault in faults if safe_in_http(fault.label)})
    if safe:
        supposed.append(
            f"requests with HEAD or OPTIONS to {', '.join(safe)} change nothing, as HTTP "
            "(RFC 9110) says"
        )
    if spared:
        supposed.append(
            f"the server of {', '.join(spared)} was not killed: what it forgets then was not seen"
        )
    return supposed


def not_read(recording: Recording) -> list[str]:
    """Endpoints with which something was said that could not be read, each with why."""
    found: dict[str, str] = {}
    for talk in recording.conversations:
        if talk.requests and (talk.problem or talk.protocol == "opaque"):
            found.setdefault(talk.endpoint, talk.problem or "no protocol that is known")
    return [f"{endpoint} ({why})" for endpoint, why in sorted(found.items())]


def endpoints_asked(recording: Recording, events: Sequence[TraceEvent], batch: int) -> list[str]:
    """The endpoints to which a request went in a batch."""
    asked = (r.endpoint for r in recording.requests if batch_at(r.order, events) == batch)
    return list(dict.fromkeys(asked))


def changes(request: Request) -> bool:
    """Whether a request may change what the server keeps."""
    return not harmless(request.label) and request.reply_size > 0


def _faults(
    request: Request, points: Iterable[CutPoint], before: str, after: str
) -> Iterator[tuple[WireFault, str]]:
    """Each fault at a request, with what it leaves behind."""
    changes = not harmless(request.label)
    for point in points:
        if point.kind == "cut":
            if request.size >= _TOO_SMALL:
                yield _own(WireFault(point, "lost"))
            continue
        lost = WireFault(point, "lost")
        yield _own(lost) if changes else (lost, f"{request.id} is lost")
        if point.kind == "omit-reply" and changes:
            yield _own(WireFault(point, "always lost"))
        yield WireFault(point, "crash"), before if point.kind == "omit" else after


def _late_looks(
    looks: Mapping[_Look, tuple[Request, Sequence[CutPoint]]],
) -> Iterator[WirePoint]:
    """A driver stands still at what only reads: of each kind at the last in a batch, for what it
    has found out by those before it no longer holds then; the last so many."""
    count = Counter[tuple[str, int]]()
    for (endpoint, batch, _), (request, points) in reversed(list(looks.items())):
        count[endpoint, batch] += 1
        if count[endpoint, batch] <= _MOST_LOOKS:
            late = tuple(_own(WireFault(p, "late")) for p in points if p.kind == "omit")
            yield WirePoint(batch, late, request.order)


def _of_the_server(
    points: Iterable[CutPoint], ours: bool, silent: bool
) -> Iterator[tuple[WireFault, str]]:
    """``silent``: that nothing is heard of the request is tried anyway."""
    for point in points:
        if ours and point.kind != "cut":
            yield _own(WireFault(point, "restarted"))
        if ours and point.kind == "omit-reply":
            yield _own(WireFault(point, "answered"))
        if point.kind == "omit":
            yield _own(WireFault(point, "paused"))
        if point.kind == "omit" and not silent:
            yield _own(WireFault(point, "silent"))


def _own(fault: WireFault) -> tuple[WireFault, str]:
    return fault, fault.id


def _around(order: int, events: Sequence[TraceEvent]) -> tuple[list[TraceEvent], TraceEvent | None]:
    """The steps before a request, and the one after it."""
    timed = [event for event in events if CLOCK in event.detail]
    earlier = [event for event in timed if event.detail[CLOCK] < order]
    later = (event for event in timed if event.detail[CLOCK] >= order)
    return earlier, next(later, None)


def batch_at(order: int, events: Sequence[TraceEvent]) -> int | None:
    """The batch under way when a request was met: that of the step before it; None before the
    first one."""
    known = [n for e in _around(order, events)[0] if (n := StepId.parse(e.step).batch) is not None]
    return known[-1] if known else None


def files_at(order: int, events: Sequence[TraceEvent]) -> str:
    """The digest of what was durable in files then; where it changed about that time, a name that
    no other moment has."""
    earlier, after = _around(order, events)
    if not earlier or after is None:
        return f"request {order}"
    files = [str(e.detail[DURABLE]).partition(" ")[0] for e in (earlier[-1], after)]
    return files[0] if files[0] == files[1] else f"request {order}"
