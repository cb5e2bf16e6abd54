"""Where a conversation can be cut exactly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from bettong.harness.wire.conversation import Keys, Recording, Request
from bettong.lineage.errors import UsageError

Kind = Literal["omit", "omit-reply", "cut", "refuse"]
KINDS: tuple[Kind, ...] = ("omit", "omit-reply", "cut")
"""Those that any request can meet, whatever its protocol."""
Match = Literal["content", "labels", "nth", "batch", "since"]
_MADE = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]*[0-9][0-9a-f]*", re.IGNORECASE
)
"""What may be made anew in each run: random ids, numbers, the run's own name."""


def same_in_each_run(label: str) -> str:
    """A label without what may be made anew in each run: ``PUT /data/?.json``."""
    return _MADE.sub("?", label)


def names_of(label: str) -> tuple[str, str, str]:
    """By what a label's request is called, the narrowest first: by itself, by what is the same of
    it in each run, and by its first word, ``PUT *``."""
    return label, same_in_each_run(label), f"{label.partition(' ')[0]} *"


@dataclass(frozen=True)
class CutPoint:
    """A point of a recorded conversation at which a run can be broken.

    Attributes:
        kind: ``omit``: the request is lost before it arrives. ``omit-reply``: it is carried out,
            all of its reply is lost. ``cut``: half of its bytes arrive. ``refuse``: it is answered
            with an error of its protocol, and not carried out.
        request: id of the request in the recording.
        match: whether the request is told again by what its connection has asked or, where that
            differs between clean runs, by the labels of it; ``nth``: by its own label, counted over
            the endpoint's connections, where these differ too; ``batch``: the same, counted within
            a batch, where runs differ in how often they ask in all; ``since``: the same, counted
            from when the cut is armed.
        key: the digest, or label, or another one of its names (:func:`names_of`), that tells it,
            ``occurrence`` which one of those, from 1.
        own: tells the request when it is sent again.
        batch: within which it is counted; the cut is armed when it begins.
    """

    kind: Kind
    endpoint: str
    request: str
    match: Match
    key: str
    occurrence: int
    own: str
    batch: int | None = None

    @property
    def place(self) -> str:
        """The request by what is the same in every run: ``postgres/conn=1/request=3 INSERT``, or
        ``kafka/Produce=3`` where it comes on one connection or another, and
        ``kafka/batch=1/Produce=2`` where its number in the run is chance."""
        if not self.by_count:
            return self.request
        within = "" if self.batch is None else f"batch={self.batch}/"
        return f"{self.endpoint}/{within}{self.key}={self.occurrence}"

    @property
    def by_count(self) -> bool:
        """Whether it is told by its label and number over all connections of the run, or batch."""
        return self.match in ("nth", "batch")

    @property
    def id(self) -> str:
        """``omit-reply(postgres/conn=1/request=3 INSERT)``"""
        return f"{self.kind}({self.place})"

    def met_by(self, endpoint: str, keys: Keys) -> bool:
        """Whether a request with these keys is the one, unless it is counted over connections."""
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
            point.kind in get_args(Kind)
            and point.match in get_args(Match)
            and all(isinstance(text, str) for text in texts)
            and type(point.occurrence) is int
            and point.occurrence > 0
            and (type(point.batch) is int if point.match == "batch" else point.batch is None)
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
    asked = [Counter((r.endpoint, r.label) for r in run.requests) for run in (first, second)]
    met: Counter[tuple[str, str]] = Counter()
    points: list[CutPoint] = []
    unpinned = []
    for request in first.requests:
        keys, own_label = request.keys, (request.endpoint, request.label)
        met[own_label] += 1
        if keys.content is not None and content[0][keys.content] == content[1][keys.content]:
            place: tuple[Match, str, int] = ("content", keys.content, keys.content_nth)
        elif labels[0][keys.label] == labels[1][keys.label]:
            place = ("labels", keys.label, keys.label_nth)
        elif asked[0][own_label] == asked[1][own_label]:
            place = ("nth", request.label, met[own_label])
        else:
            unpinned.append(request)
            continue
        own = keys.own if place[0] == "content" else request.label
        points += [
            CutPoint(kind, request.endpoint, request.id, *place, own)
            for kind in possible(request, wanted)
        ]
    return CutPoints(tuple(points), tuple(unpinned))


def _counts(recording: Recording, by_content: bool) -> Counter[str | None]:
    return Counter(
        request.keys.content if by_content else request.keys.label for request in recording.requests
    )


def possible(request: Request, kinds: Iterable[Kind] = KINDS) -> Iterator[Kind]:
    """Those kinds of cuts that a request can meet."""
    for kind in kinds:
        if kind == "omit" or (request.reply_size > 0 if kind == "omit-reply" else request.size > 1):
            yield kind
