"""Where a conversation can be cut exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from bettong.harness.wire.conversation import Keys, Recording, Request
from bettong.lineage.errors import UsageError

Kind = Literal["omit", "omit-reply", "cut"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Match = Literal["content", "labels", "since"]


@dataclass(frozen=True)
class CutPoint:
    """A point of a recorded conversation at which a run can be broken.

    Attributes:
        kind: ``omit``: the request is lost before it arrives. ``omit-reply``: it is carried out,
            all of its reply is lost. ``cut``: half of its bytes arrive.
        request: id of the request in the recording.
        match: whether the request is told again by what its connection has asked or, where that
            differs between clean runs, by the labels of it; ``since``: by its own label, counted
            from when the cut is armed.
        key: the digest, or label, that tells it, ``occurrence`` which one of those, from 1.
        own: tells the request when it is sent again.
    """

    kind: Kind
    endpoint: str
    request: str
    match: Match
    key: str
    occurrence: int
    own: str

    @property
    def id(self) -> str:
        """``omit-reply(postgres/conn=1/request=3 INSERT)``"""
        return f"{self.kind}({self.request})"

    def met_by(self, endpoint: str, keys: Keys) -> bool:
        """Whether a request with these keys is the one, unless it is counted since the arming."""
        if endpoint != self.endpoint:
            return False
        if self.match == "content":
            return (keys.content, keys.content_nth) == (self.key, self.occurrence)
        return (keys.label, keys.label_nth) == (self.key, self.occurrence)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> CutPoint:
        """Raises UsageError if it is none."""
        try:
            point = cls(**given)
        except TypeError as e:
            raise UsageError(f"no cut point: {e}") from None
        texts = (point.endpoint, point.request, point.key, point.own)
        right = (
            point.kind in KINDS
            and point.match in get_args(Match)
            and all(isinstance(text, str) for text in texts)
            and type(point.occurrence) is int
            and point.occurrence > 0
        )
        if not right:
            raise UsageError(f"no cut point: {dict(given)}")
        return point


@dataclass(frozen=True)
class CutPoints:
    """What two clean runs show.

    Attributes:
        points: in the order in which the first run reached them.
        unpinned: requests of the first run that the second did not make as often: no cut can be
            placed there exactly.
    """

    points: tuple[CutPoint, ...]
    unpinned: tuple[Request, ...]


def cut_points(first: Recording, second: Recording, kinds: Iterable[Kind] = KINDS) -> CutPoints:
    """Every point of the first clean run that the second one had as well."""
    wanted = tuple(kinds)
    content = [_counts(run, by_content=True) for run in (first, second)]
    labels = [_counts(run, by_content=False) for run in (first, second)]
    points: list[CutPoint] = []
    unpinned = []
    for request in first.requests:
        keys = request.keys
        if keys.content is not None and content[0][keys.content] == content[1][keys.content]:
            place: tuple[Match, str, int] = ("content", keys.content, keys.content_nth)
        elif labels[0][keys.label] == labels[1][keys.label]:
            place = ("labels", keys.label, keys.label_nth)
        else:
            unpinned.append(request)
            continue
        own = keys.own if place[0] == "content" else request.label
        points += [
            CutPoint(kind, request.endpoint, request.id, *place, own)
            for kind in wanted
            if _possible(kind, request)
        ]
    return CutPoints(tuple(points), tuple(unpinned))


def _counts(recording: Recording, by_content: bool) -> Counter[str | None]:
    return Counter(
        request.keys.content if by_content else request.keys.label for request in recording.requests
    )


def _possible(kind: Kind, request: Request) -> bool:
    if kind == "omit-reply":
        return request.reply_size > 0
    return kind == "omit" or request.size > 1
