"""Faults on the wire while the query is being started again: distinguished by the request's label,
counted from the restart, for what a replay asks differs from what was asked before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bettong.harness.queries.faults.alike import Kind, kind_of, telling
from bettong.harness.queries.faults.read_only_requests import meant_to_read
from bettong.harness.queries.faults.wake import at_request
from bettong.harness.queries.faults.wire import (
    CLOCK,
    batch_at,
    changes,
    files_at,
    request_digest,
)
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.wire import Keys
from bettong.harness.wire.cutpoints import same_in_each_run


def second_on_wire(run: QueryRun, batch: int, pinned: set[Kind]) -> Iterator[tuple[WireFault, str]]:
    """What can hit the last request to each endpoint that changes something, and the last GET,
    while a batch is written again after a crash, with what is equal for all that leave the same
    behind; and the driver's death before each request of a kind that only the recovery makes, such
    as those that clear up, and before those that change something while the query is not begun yet,
    such as those by which code around it puts right what the dead driver has left.

    ``pinned``: kinds of the requests that clean runs make equally.
    """
    if len(run.starts) < 2:
        return
    begun = next(
        (e.detail[CLOCK] for e in run.events if e.incarnation == 2 and CLOCK in e.detail), None
    )
    if begun is None:
        return
    first_ones = [r for r in run.recording.requests if run.starts[1] < r.order < begun]
    told = telling((r, batch) for r in first_ones if changes(r)).all
    counts: Counter[tuple[str, str]] = Counter()
    reported: list[tuple[str, str, Keys | None]] = []
    last: dict[tuple[str, bool], list[tuple[WireFault, str]]] = {}
    for request in run.recording.requests:
        place = (request.endpoint, same_in_each_run(request.label))
        reported.append((request.endpoint, request.label, request.keys))
        if request.order < run.starts[1] or (len(run.starts) > 2 and request.order > run.starts[2]):
            continue
        counts[place] += 1
        starting = request.order < begun
        if not changes(request) or batch_at(request.order, run.events) != batch:
            continue
        if request.id in told or (not starting and kind_of(request) not in pinned):
            before = (
                f"{files_at(request.order, run.events)} {request_digest(reported[:-1], run.id)}"
            )
            yield WireFault(at_request("omit", *place, counts[place]), "crash"), before
        elif not starting:
            lost, reply = (
                at_request(kind, *place, counts[place]) for kind in ("omit", "omit-reply")
            )
            left = f"{files_at(request.order, run.events)} {request_digest(reported, run.id)}"
            last[request.endpoint, meant_to_read(request.label)] = [
                (WireFault(lost, "lost"), ""),
                (WireFault(reply, "lost"), ""),
                (WireFault(reply, "crash"), left),
            ]
    for faults in last.values():
        yield from faults
