"""The grammar of step ids: which names a step can have, and the nearest right one for a misspelled.

A *shape* is a step id with every number as ``N`` and every stream's name as ``STREAM``:
``batch=3/sink.commit`` has the shape ``batch=N/sink.commit``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from bettong.lineage.nearest import nearest

_PART = re.compile(r"([a-z]+)=(0|[1-9]\d*)\Z")


@dataclass(frozen=True, slots=True)
class StepId:
    """A step id by its parts, e.g. ``batch=3/p=0/a=1/sink.prepare``: each is ``NAME=NUMBER``, or a
    word: what is done, or a stream and a message's number.

    Attributes:
        parts: a number's name and the number, or a word and None.
    """

    parts: tuple[tuple[str, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> StepId:
        """The parts of any step id; ``str`` of it is the same text again."""
        return _parsed(text)

    def __str__(self) -> str:
        return "/".join(name if n is None else f"{name}={n}" for name, n in self.parts)

    def number(self, name: str) -> int | None:
        """The first number of this name."""
        return next((n for part, n in self.parts if part == name and n is not None), None)

    @property
    def batch(self) -> int | None:
        """The micro-batch."""
        return self.number("batch")

    @property
    def stage(self) -> int | None:
        """The stage of a task."""
        return self.number("stage")

    @property
    def partition(self) -> int | None:
        """The partition of a task, or of what it does."""
        return self.number("p")

    @property
    def attempt(self) -> int | None:
        """The attempt at that."""
        return self.number("a")

    @property
    def epoch(self) -> int | None:
        """The run of the query between restarts."""
        return self.number("epoch")

    @property
    def task(self) -> tuple[int, int, int] | None:
        """Batch, partition and attempt of what a task's attempt is or does; None for other
        steps."""
        if self.batch is None or self.partition is None or self.attempt is None:
            return None
        return self.batch, self.partition, self.attempt


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> StepId:
    def part(word: str) -> tuple[str, int | None]:
        found = _PART.match(word)
        return (found[1], int(found[2])) if found and len(found[2]) < 19 else (word, None)

    return StepId(tuple(map(part, text.split("/"))))


_NUMBER = re.compile(r"(?<==)\d+")
_WITH_MESSAGE = re.compile(
    r"(?P<head>(?:sender|gateway)\.[A-Za-z_-]+)/(?P<stream>[^/]+)(?:/(?P<number>\d+|end))?$"
)

SHAPES = frozenset(
    {
        "sender.connect/STREAM",
        "sender.send/STREAM/N",
        "sender.forget/STREAM/N",
        "gateway.append/STREAM/N",
        "gateway.ack/STREAM/N",
        "gateway.release/STREAM/N",
        "epoch=N/take",
        "epoch=N/sink.open",
        "receiver.open/epoch=N",
        "batch=N/source.wait",
        "batch=N/source.plan",
        "batch=N/source.note",
        "batch=N/offsets",
        "batch=N/stage=N/p=N/a=N/task",
        "batch=N/p=N/a=N/source.read",
        "batch=N/p=N/a=N/source.middle",
        "batch=N/p=N/a=N/state.write",
        "batch=N/level=N/p=N/a=N/state.write",
        "batch=N/level=N/p=N/a=N/sink.prepare",
        "batch=N/p=N/a=N/sink.prepare",
        "receiver.prepare/batch=N/p=N/a=N",
        "batch=N/state.manifest",
        "batch=N/sink.commit",
        "batch=N/p=N/sink.commit",
        "batch=N/sink.record",
        "receiver.commit/batch=N",
        "batch=N/commits",
        "batch=N/source.commit",
        "batch=N/_spark_metadata",
        "metadata",
    }
)
_FREE_TAIL = re.compile(r"(?:batch=\d+/state|state\.metadata|source=\d+)/\S+$")


# Where an application has several sources or sinks, the step ends in the name of one.
_NAMED_END = re.compile(
    r"(?P<step>.*/(?:source|sink)\.[a-z]+|receiver\.[a-z]+(?:/[a-z]+=\d+)+)"
    r"/(?P<name>[A-Za-z_][\w.-]*)$"
)


# A push is not answered.
_PUSHES = re.compile(r"(?:sender\.send|gateway\.ack)/")

# What needs a disk that takes it.
_STORED = re.compile(
    r"(?:gateway\.(?:append|release)|receiver\.\w+)/"
    r"|batch=\d+/(?:source\.note|offsets|state\.manifest|commits|_spark_metadata.*|stage=.*/task)$"
    r"|batch=\d+/(?:level=\d+/)?p=\d+/a=\d+/state\.write$"
    r"|metadata$|epoch=\d+/take$"
)
_SINK = re.compile(r"batch=\d+/.*\bsink\.")


def split_name(step: str) -> tuple[str, str]:
    """A step id without the name of a source or sink at its end, and that name if there is one."""
    named = _NAMED_END.match(step)
    return (named["step"], named["name"]) if named else (step, "")


def message_of(step: str) -> tuple[str, str] | None:
    """The stream and the number, or ``end``, of the message that a step of the sender or the
    gateway names; None for other steps."""
    named = _WITH_MESSAGE.match(step)
    return (named["stream"], named["number"]) if named and named["number"] else None


def shape_of(step: str) -> str:
    """The shape of a step id; what fits no known pattern keeps its letters."""
    named = _WITH_MESSAGE.match(step)
    if named:
        return f"{named['head']}/STREAM" + ("/N" if named["number"] is not None else "")
    return _NUMBER.sub("N", split_name(step)[0])


def is_step(step: str, shapes: Iterable[str] = SHAPES) -> bool:
    """Whether a step of this name can exist."""
    return shape_of(step) in set(shapes) or _FREE_TAIL.match(step) is not None


def nearest_step(step: str, shapes: Iterable[str] = SHAPES) -> str | None:
    """The step id most like a misspelled one, with the numbers that were given."""
    found = nearest(shape_of(step), shapes, 0.5)
    if found is None:
        return None
    named = _WITH_MESSAGE.match(step)
    stream = named["stream"] if named else "STREAM"
    numbers = iter(re.findall(r"(?<==)\d+|(?<=/)\d+$", step))
    filled = found.replace("STREAM", stream)
    return re.sub(r"(?<==)N|(?<=/)N$", lambda m: next(numbers, m.group()), filled)


def is_stored(step: str, link: str | None) -> bool:
    """Whether the process that takes a step writes to its disk in it; a sink that is no other
    node writes itself."""
    return bool(_STORED.match(step) or (link is None and _SINK.match(step)))


def is_wait(step: str) -> bool:
    """Whether a step asks when the wait of a batch ends."""
    return step.endswith("/source.wait")


def is_push(step: str) -> bool:
    """Whether a step sends something that is not answered."""
    return _PUSHES.match(step) is not None
