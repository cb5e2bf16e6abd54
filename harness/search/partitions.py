"""Partitions as hypotheses: the requests that one cut between nodes loses.

A cut begins at a request and heals when two have met it, so that it loses the second try too, where
an omission loses one. The server is cut off from the one that asks it, or,
where it has several clients, from all of them: whatever is on its way between them is lost too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.faults.fault import TakenStep
from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.occurrences import Occurrence, Reading

Between = tuple[tuple[str, ...], tuple[str, ...], Point]
_CONNECT = "sender.connect/"


class Partitions:
    """The cuts of one run, by the requests that they lose."""

    def __init__(self, reading: Reading) -> None:
        self._taken = {(o.step, o.number): o for o in reading.occurrences}
        requests = [o for o in reading.occurrences if o.link is not None]
        self._of_step: dict[str, list[Occurrence]] = {}
        self._clients: dict[str, set[str]] = {}
        for o in requests:
            client, server = _ends(o)
            self._of_step.setdefault(o.step, []).append(o)
            self._clients.setdefault(server, set()).add(client)
        self._cuts: dict[str, list[Between]] = {}
        for o in requests:
            self._place(o)

    def apart(self, step: TakenStep) -> Sequence[Between]:
        """The two sides of each partition that loses this request, and when it begins."""
        return self._cuts.get(Point(step.step, "before", step.number).place, ())

    def tried_again(self, step: TakenStep) -> Point | None:
        """When the client that has asked a server for this step, and gets no answer, begins to ask
        again."""
        o = self._taken[step.step, step.number]
        causes = [*o.causes, *self._connecting(o)]
        asked = (c for c in causes if (c.link or "").endswith(f"->{o.node}"))
        request = next((c for c in asked if not c.done_at(o.begun) or c.id.is_push), None)
        if request is None or _ends(request)[0] == o.node:  # who asks again is what stands still
            return None
        again = _begins_again(request)
        tried = sum(o.begun <= request.begun for o in self._of_step.get(again, ()))
        return Point(again, "before", tried + 1)

    def _connecting(self, o: Occurrence) -> list[Occurrence]:
        """The senders that have connected and wait, where a server makes room for one of them, of
        whom it does not know which step he takes."""
        if not o.id.is_ahead or o.id.connects:
            return []
        return [
            request
            for step, requests in self._of_step.items()
            if step.startswith(_CONNECT)
            for request in requests
            if request.begun < o.begun and not request.over_at(o.begun)
        ]

    def _place(self, request: Occurrence) -> None:
        client, server = _ends(request)
        sides = dict.fromkeys([(client,), tuple(sorted(self._clients[server]))])
        start = Point(request.step, "before", request.number)
        again = self._tried_next(request)
        for lost in (request, again):
            if lost is not None:
                cuts = [((server,), side, start) for side in sides]
                self._cuts.setdefault(lost.name, []).extend(cuts)

    def _tried_next(self, request: Occurrence) -> Occurrence | None:
        """What was lost is tried again so, if it was."""
        again = self._of_step.get(_begins_again(request), ())
        later = (o for o in again if o.begun > request.begun)
        return next(later, None)


def _ends(request: Occurrence) -> tuple[str, str]:
    """Who opened the connection of a request, and with whom; an acknowledgement is pushed on the
    connection of what it acknowledges."""
    a, _, b = (request.link or "").partition("->")
    return (b, a) if request.step.startswith("gateway.ack/") else (a, b)


def _begins_again(request: Occurrence) -> str:
    """The step by which whoever gets no answer begins to ask again: a sender connects, and where
    one request does not hold it all, all of its parts are asked for anew."""
    id = StepId.parse(request.step)
    if id.message and id.is_push:
        return f"{_CONNECT}{id.message[0]}"
    return str(id.whole)
