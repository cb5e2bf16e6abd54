"""State that is forgotten when its key has been silent for long.

Time is event time, and each key has its own: an entity is as old as the time between its last
message and the next one of its key. It is forgotten when that message comes, not before, so what
the application gives does not depend on batches or on other keys; until then it takes up room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field, make_dataclass
from typing import Any

from bettong.engine.functions import StateFunction, state_computation_multi, state_entity
from bettong.lineage.errors import UsageError


def expiring(
    function: StateFunction,
    time: Callable[[Any], float],
    after: float,
    on_expiry: Callable[[Any], Iterable[Any]] = lambda entity: (),
) -> StateFunction:
    """The state computation with entities that are made anew after a silence.

    Args:
        function: whose state is a dataclass.
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
    make = function.state.cls
    entity = make_dataclass(
        f"Expiring{make.__name__}",
        [("last", float, -math.inf), ("value", make, field(default_factory=make))],
    )

    def apply(message: Any, kept: Any) -> list[Any]:
        at = float(time(message))
        given: list[Any] = []
        if math.isfinite(kept.last) and at - kept.last > after:
            given += on_expiry(kept.value)
            kept.value = make()
        kept.last = max(kept.last, at)
        result = function.call(message, kept.value)
        if function.kind == "state_computation_multi":
            return [*given, *result]
        return given if result is None else [*given, result]

    apply.__name__ = function.name
    return state_computation_multi(state=state_entity(entity, name=function.state.name))(apply)
