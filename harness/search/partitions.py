"""Partitions as hypotheses: the requests that one cut between nodes loses.

A cut begins at a request and heals when the same has been tried for the third time, so that it
loses two tries where an omission loses one. Where at its beginning a request of another client is
on its way to the same server, the server is cut off from both, and the one cut loses them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.faults import Cut, Point
from bettong.harness.search.occurrences import Occurrence, Reading, is_push
from bettong.harness.step_names import message_of

_TRIES = 2
_CONNECT = "sender.connect/"


class Partitions:
    """The cuts of one run, by the requests that they lose."""

    def __init__(self, reading: Reading) -> None:
        self._requests = [o for o in reading.occurrences if o.link is not None]
        self._cuts: dict[str, list[Cut]] = {}
        for o in self._requests:
            self._place(o)

    def losing(self, request: Occurrence) -> Sequence[Cut]:
        """The cuts that lose this request."""
        return self._cuts.get(request.name, ())

    def _place(self, request: Occurrence) -> None:
        client, server = _ends(request)
        beside = [o for o in self._requests if _on_its_way(o, request) and _ends(o)[1] == server]
        others = {_ends(o)[0] for o in beside} - {client, server}
        cut = Cut(
            (server,),
            (client, *sorted(others)),
            Point(request.step, "before", request.number),
            self._healed(request),
        )
        again = self._tried_next(request)
        for lost in (request, *(o for o in beside if others), *([again] if again else [])):
            self._cuts.setdefault(lost.name, []).append(cut)

    def _healed(self, request: Occurrence) -> Point:
        connect = _connect(request)
        if connect is None:
            return Point(request.step, "before", request.number + _TRIES)
        tried = sum(o.step == connect and o.begun <= request.begun for o in self._requests)
        return Point(connect, "before", tried + _TRIES)

    def _tried_next(self, request: Occurrence) -> Occurrence | None:
        """What was lost is tried again so, if it was."""
        step = _connect(request) or request.step
        later = (o for o in self._requests if o.step == step and o.begun > request.begun)
        return next(later, None)


def _ends(request: Occurrence) -> tuple[str, str]:
    """Who opened the connection of a request, and with whom; an acknowledgement is pushed on the
    connection of what it acknowledges."""
    a, _, b = (request.link or "").partition("->")
    return (b, a) if request.step.startswith("gateway.ack/") else (a, b)


def _connect(request: Occurrence) -> str | None:
    """The step by which a sender tries again what is not answered."""
    if request.step.startswith(_CONNECT):
        return request.step
    named = message_of(request.step)
    return f"{_CONNECT}{named[0]}" if named and is_push(request.step) else None


def _on_its_way(request: Occurrence, when: Occurrence) -> bool:
    ended = request.ended is None or request.ended > when.begun
    return request is not when and request.begun < when.begun and ended
