"""State that is forgotten when its key has been silent for long.

Time is event time, and each key has its own: an entity is as old as the time between its last
message and the next one of its key. It is forgotten when that message comes, or when a tick
(:mod:`bettong.engine.ticks`) tells it the time; so what the application gives does not depend on
batches. Only a tick makes room: without one the entity is kept until its key's next message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field, make_dataclass
from typing import Any

from bettong.engine.event_time import event_time
from bettong.engine.functions import (
    StateFunction,
    state_computation_multi,
    state_entity,
    takes_ticks,
)
from bettong.engine.ticks import Tick
from bettong.lineage.errors import UsageError


def expiring(
    function: StateFunction,
    time: Callable[[Any], float],
    after: float,
    on_expiry: Callable[[Any], Iterable[Any]] = lambda entity: (),
) -> StateFunction:
    """The state computation with entities that are made anew after a silence.

    Args:
        function: whose state is a dataclass; a window gets its ticks first.
        time: event time of a message, in seconds.
        after: how many seconds of silence an entity outlives.
        on_expiry: entity that is forgotten → messages that are given before the new one's.

    Raises:
        UsageError: ``after`` is not more than 0, or the function is one over arrays.
    """
    if not after > 0:
        raise UsageError(f"step {function.name}: after must be more than 0, got {after}")
    if function.arrays:
        raise UsageError(f"step {function.name}: state computations over arrays do not expire")
    make, forget = function.state.cls, function.state.forget
    entity = make_dataclass(
        f"Expiring{make.__name__}",
        [("last", float, -math.inf), ("value", make, field(default_factory=make))],
    )

    def call(message: Any, kept: Any) -> list[Any]:
        result = function.call(message, kept.value)
        if function.kind == "state_computation_multi":
            return list(result)
        return [] if result is None else [result]

    def expired(at: float, kept: Any) -> list[Any]:
        if not (math.isfinite(kept.last) and at - kept.last > after):
            return []
        given = list(on_expiry(kept.value))
        kept.last, kept.value = -math.inf, make()
        return given

    def apply(message: Any, kept: Any) -> list[Any]:
        if isinstance(message, Tick):
            given = call(message, kept) if function.ticks else []
            return [*given, *expired(message.time, kept)]
        at = event_time(time(message))
        given = expired(at, kept)
        kept.last = max(kept.last, at)
        return [*given, *call(message, kept)]

    apply.__name__ = function.name

    def is_gone(kept: Any) -> bool:
        return kept.last == -math.inf or (forget is not None and forget(kept.value))

    state = state_entity(entity, name=function.state.name, forget=is_gone)
    return takes_ticks(state_computation_multi(state=state)(apply))
