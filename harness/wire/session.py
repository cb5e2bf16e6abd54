"""One connection through the relay, without its sockets: bytes in, what to do out.

While no cut is armed, bytes go on as they come. While one is, they go on request by request: a
request is held until it is whole, so that it can be recognised, and a reply that is to be lost is
held until it is whole, so that the server has done all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from bettong.harness.toxiproxy.spec import Stream
from bettong.harness.wire.conversation import History, Keys
from bettong.harness.wire.cutpoints import Kind
from bettong.harness.wire.framing.adaptive import AdaptiveFraming
from bettong.harness.wire.framing.base import Info
from bettong.harness.wire.framing.refusal import Refusal

HELD_LIMIT = 64 * 1024 * 1024  # bytes held back at most, in each direction


class Hit(Protocol):
    """A cut that a request has met."""

    @property
    def kind(self) -> Kind: ...
    @property
    def close(self) -> bool: ...
    @property
    def answer(self) -> bytes: ...
    def missed(self, why: str) -> None: ...
    def refused(self, error: str) -> None: ...


class Judge(Protocol):
    """Who knows which cuts are armed."""

    @property
    def armed(self) -> bool: ...
    def decide(self, request: Info, keys: Keys) -> Hit | None: ...


@dataclass
class Logged:
    """A request as it was met."""

    info: Info
    keys: Keys | None  # of those that are counted
    order: int
    size: int
    reply_size: int = 0
    replied: int = 0

    @property
    def waits(self) -> bool:
        """Whether its reply is due and has not come."""
        return self.keys is not None and self.info.replied and not self.reply_size


@dataclass(frozen=True)
class Forward:
    stream: Stream
    data: bytes


@dataclass(frozen=True)
class Fire:
    """The point is reached: carry the fault out."""

    hit: Hit
    request: Logged


@dataclass(frozen=True)
class Close:
    """End the connection, both ways, after what was forwarded."""


Step = Forward | Fire | Close


@dataclass
class _Lane:
    """One direction, as offsets into its stream."""

    stream: Stream
    seen: int = 0
    reported: int = 0  # the framing has said what these are
    sent: int = 0
    start: int = 0  # of the request or reply that is coming
    held: bytearray = field(default_factory=bytearray)  # from sent to seen

    def push(self, data: bytes) -> None:
        self.seen += len(data)
        self.held += data

    def pass_on(self, data: bytes) -> list[Step]:
        """``data`` go on as they are, without being held first."""
        self.seen += len(data)
        self.sent = self.seen
        return [Forward(self.stream, data)]

    def forward(self, upto: int) -> list[Step]:
        count = upto - self.sent
        if count <= 0:
            return []
        data = bytes(self.held[:count])
        del self.held[:count]
        self.sent = upto
        return [Forward(self.stream, data)]

    def replace(self, upto: int, data: bytes) -> list[Step]:
        """``data`` go on in place of what is held up to there."""
        del self.held[: upto - self.sent]
        self.sent = upto
        return [Forward(self.stream, data)]


class Session:
    """Decides what becomes of each byte of a connection."""

    def __init__(
        self, framing: AdaptiveFraming, history: History, judge: Judge, clock: Clock
    ) -> None:
        self.framing = framing
        self.requests: list[Logged] = []
        self._history = history
        self._judge = judge
        self._clock = clock
        self._up = _Lane("upstream")
        self._down = _Lane("downstream")
        self._doomed: dict[int, Hit] = {}  # requests whose replies are to be lost
        self._refused: dict[int, Refusal] = {}  # requests whose replies are to be errors
        self._answered: Logged | None = None  # whose reply came last
        self._ended = False

    def client(self, data: bytes) -> list[Step]:
        """The client has sent ``data``."""
        direction = self._up
        steps: list[Step] = []
        if direction.held or self._judge.armed:
            direction.push(data)
        else:
            steps = direction.pass_on(data)
        for part in self.framing.client(data):
            direction.reported += part.size
            if part.more:
                self.requests[-1].size += part.size
                direction.start = direction.reported
            elif part.request is not None:
                steps += self._request(part.request)
                if self._ended:
                    return steps
                direction.start = direction.reported
        pass_on_all = (
            not self._judge.armed
            or self.framing.problem is not None
            or len(direction.held) > HELD_LIMIT
        )
        return steps + direction.forward(direction.seen if pass_on_all else direction.start)

    def _request(self, info: Info) -> list[Step]:
        direction = self._up
        size = direction.reported - direction.start
        keys = self._history.add(info) if info.role == "request" else None
        logged = Logged(info, keys, self._clock(), size)
        self.requests.append(logged)
        hit = None if keys is None else self._judge.decide(info, keys)
        if hit is None:
            return []
        if hit.kind == "omit-reply":
            if info.replied:
                self._doomed[len(self.requests) - 1] = hit
            else:
                hit.missed("no reply to it was due")
            return []
        stop = direction.start + (size // 2 if hit.kind == "cut" else 0)
        if direction.sent > stop:
            hit.missed("part of it had passed before it could be told")
            return []
        if hit.kind == "refuse":
            return self._refuse(hit, logged)
        return [*direction.forward(stop), Fire(hit, logged), *self._end_at(hit)]

    def _refuse(self, hit: Hit, logged: Logged) -> list[Step]:
        direction = self._up
        begin, end = (at - direction.sent for at in (direction.start, direction.reported))
        refusal = self.framing.refusal(logged.info, bytes(direction.held[begin:end]))
        if refusal is None:
            hit.missed("how a server refuses it is not known")
            return []
        hit.refused(refusal.error)
        steps = [*direction.forward(direction.start), Fire(hit, logged)]
        if not refusal.instead:
            self._ended = True
            return [*steps, Forward("downstream", refusal.answer(b"")), Close()]
        self._refused[len(self.requests) - 1] = refusal
        return [*steps, *direction.replace(direction.reported, refusal.instead)]

    def server(self, data: bytes) -> list[Step]:
        """The server has sent ``data``."""
        direction = self._down
        steps: list[Step] = []
        if direction.held or self._doomed or self._refused:
            direction.push(data)
        else:
            steps = direction.pass_on(data)
        for answer in self.framing.server(data):
            direction.reported += answer.size
            if answer.more:
                if self._answered is not None:
                    self._answered.reply_size += direction.reported - direction.start
                direction.start = direction.reported
            if not answer.to:
                continue
            for number in answer.to:
                self._answered = self.requests[number]
                self._answered.reply_size += direction.reported - direction.start
                self._answered.replied = self._clock()
            for number in answer.to:
                hit = self._doomed.pop(number, None)
                if hit is not None:
                    steps += [
                        *direction.forward(direction.start),
                        Fire(hit, self.requests[number]),
                    ]
                    steps += self._end_at(hit)
                    if self._ended:
                        return steps
                refusal = self._refused.pop(number, None)
                if refusal is not None:
                    steps += direction.forward(direction.start)
                    reply = bytes(direction.held[: direction.reported - direction.sent])
                    steps += direction.replace(direction.reported, refusal.answer(reply))
            direction.start = direction.reported
        if not (self._doomed or self._refused) or self.framing.problem is not None:
            return steps + direction.forward(direction.seen)
        if self._doomed and len(direction.held) > HELD_LIMIT:  # too long to wait for its end
            number, hit = next(iter(self._doomed.items()))
            return [*steps, Fire(hit, self.requests[number]), *self._end_at(hit)]
        return steps + direction.forward(direction.start)

    def _end_at(self, hit: Hit) -> list[Step]:
        """What its client is told instead of a reply, and that nothing follows."""
        answered: list[Step] = [Forward("downstream", hit.answer)] if hit.answer else []
        if not hit.close:
            return answered
        self._ended = True
        return [*answered, Close()]

    def end(self, stream: Stream) -> list[Step]:
        """That side has closed: what was held of it goes on."""
        direction = self._up if stream == "upstream" else self._down
        return [] if self._ended else direction.forward(direction.seen)


class Clock(Protocol):
    """Counts events of the run."""

    def __call__(self) -> int: ...
