"""Telling time to keys that get no messages.

A :class:`Tick` says that event time has come to somewhere. Taken to every key
(:meth:`bettong.engine.Stream.every_key`), it fires the windows that are over and forgets entities
that have been silent for long. Ticks are messages: they have ids and places in the order, so that
what they do depends neither on batches nor on the machine's clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bettong.engine.event_time import event_time
from bettong.engine.functions import key_extractor, state_computation, state_entity
from bettong.engine.graph import Stream
from bettong.lineage.errors import UsageError


class Tick(NamedTuple):
    """Event time has come to here: what is earlier is late. ``math.inf`` is the end of all."""

    time: float


@dataclass
class Clock:
    """What a watermark keeps.

    Attributes:
        seen: messages so far.
        latest: event time so far.
    """

    seen: int = 0
    latest: float = -math.inf


def watermark(
    stream: Stream, time: Callable[[Any], float], every: int, name: str = "watermark"
) -> Stream:
    """A tick for every key after each so many messages of a stream, with its latest event time.

    All messages of the stream pass one entity, and each tick reads the whole state of the steps
    that it comes to: ``every`` should be thousands.

    Args:
        stream: the messages.
        time: event time of a message, in seconds.
        every: after how many messages time is told.
        name: of the step; the state of that name is its clock.

    Raises:
        UsageError: ``every`` is not at least 1.
    """
    if every < 1:
        raise UsageError(f"watermark {name}: every must be at least 1, got {every}")

    @key_extractor
    def one_for_all(message: Any) -> str:
        return name

    @state_computation(state=state_entity(Clock, name=name))
    def advance(message: Any, clock: Clock) -> Tick | None:
        clock.latest = max(clock.latest, event_time(time(message)))
        clock.seen += 1
        return None if clock.seen % every else Tick(clock.latest)

    keyed = stream.key_by(one_for_all, name=f"{name}_key")
    return keyed.to(advance, name=name).every_key(name=f"{name}_for_all")
