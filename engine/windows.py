"""Windows over the messages of a key, as state computations.

Every key has its own clock: the latest event time that it has seen, less ``delay``. A window fires
when its end is not after the clock, so what it gives depends on the key's messages and their
order alone, never on batches or on other keys. A key without later messages keeps its last windows
open, unless ticks tell it the time: see :mod:`bettong.engine.ticks`.

A message is late when a window that it belongs to has fired. What becomes of it is said by the
policy: ``drop`` counts it in the entity (``dropped``), gives what ``on_late`` makes of it and
forgets it; ``fire again`` adds it to the
window, as long as that is kept, and gives the window's new value; ``oldest`` adds it to the oldest
window that is open, unless that is one it belongs to, where it is already.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal, NamedTuple

from bettong.engine.event_time import Grid, event_time
from bettong.engine.functions import (
    StateFunction,
    state_computation_multi,
    state_entity,
    takes_ticks,
)
from bettong.engine.ticks import Tick
from bettong.lineage.errors import UsageError

Lateness = Literal["drop", "fire again", "oldest"]
Update = Callable[[Any, Any], None]
Time = Callable[[Any], float]
OnLate = Callable[[Any], Iterable[Any]]


class Fired(NamedTuple):
    """A window's value.

    Attributes:
        start: first event time of the window, for a count window the number of its first message.
        end: first event time after it.
        value: the accumulator.
    """

    start: float
    end: float
    value: Any


def count_window(name: str, accumulator: type, update: Update, size: int) -> StateFunction:
    """Every ``size`` messages of a key their accumulator.

    Args:
        name: of the step and its state.
        accumulator: a dataclass, made anew for each window.
        update: adds a message to an accumulator, in place.
        size: number of messages.
    """
    _positive(name, size=size)
    entity = make_dataclass(
        "Counted",
        [("seen", int, 0), ("value", accumulator, field(default_factory=accumulator))],
    )

    def apply(message: Any, counted: Any) -> list[Fired]:
        if isinstance(message, Tick):
            return []
        update(message, counted.value)
        counted.seen += 1
        if counted.seen % size:
            return []
        value, counted.value = counted.value, accumulator()
        return [Fired(counted.seen - size, counted.seen, value)]

    return _function(name, entity, apply)


def sliding(
    name: str,
    accumulator: type,
    update: Update,
    time: Time,
    size: float,
    slide: float,
    delay: float = 0.0,
    late: Lateness = "drop",
    keep: float = 0.0,
    on_late: OnLate = lambda message: (),
) -> StateFunction:
    """Windows of ``size`` seconds that begin at every multiple of ``slide`` seconds.

    Args:
        name: of the step and its state.
        accumulator: a dataclass, made anew for each window.
        update: adds a message to an accumulator, in place.
        time: event time of a message, in seconds.
        size: length of a window, in seconds.
        slide: from the beginning of one window to that of the next.
        delay: by how much the clock follows the latest event time.
        late: what becomes of late messages.
        keep: with ``fire again``, for how long after firing a window is kept.
        on_late: dropped message → messages that the step gives instead.
    """
    _positive(name, size=size, slide=slide)
    rules = _Rules(update, time, Grid(size, slide), delay, late, keep, on_late)
    open_window = make_dataclass(
        "Window",
        [("value", accumulator, field(default_factory=accumulator)), ("fired", bool, False)],
    )
    entity = make_dataclass(
        "Windows",
        [
            ("clock", float, -math.inf),
            ("dropped", int, 0),
            ("windows", dict[float, open_window], field(default_factory=dict)),  # type: ignore[valid-type]
        ],
    )
    return _function(name, entity, lambda m, e: list(rules.apply(m, e, open_window)))


def tumbling(
    name: str,
    accumulator: type,
    update: Update,
    time: Time,
    size: float,
    delay: float = 0.0,
    late: Lateness = "drop",
    keep: float = 0.0,
    on_late: OnLate = lambda message: (),
) -> StateFunction:
    """Windows of ``size`` seconds, one after the other; see :func:`sliding`."""
    return sliding(name, accumulator, update, time, size, size, delay, late, keep, on_late)


@dataclass(frozen=True)
class _Rules:
    update: Update
    time: Time
    grid: Grid
    delay: float
    late: Lateness
    keep: float
    on_late: OnLate

    def apply(self, message: Any, entity: Any, open_window: type) -> Iterator[Any]:
        if isinstance(message, Tick):
            entity.clock = max(entity.clock, message.time - float(self.delay))
            yield from self._fire(entity)
            return
        at = event_time(self.time(message))
        late, joined = False, set()
        for start in self.grid.starts(at):
            window = entity.windows.get(start)
            over = self.grid.end(start) <= entity.clock
            if over and (window is None or self.late != "fire again"):
                late = True
                continue
            if window is None:
                window = entity.windows[start] = open_window()
            self.update(message, window.value)
            joined.add(start)
            if over:
                yield self._fired(start, window)
        if late:
            yield from self._take_late(message, entity, joined)
        entity.clock = max(entity.clock, at - float(self.delay))
        yield from self._fire(entity)

    def _take_late(self, message: Any, entity: Any, joined: set[float]) -> Iterator[Any]:
        waiting = [s for s, w in entity.windows.items() if not w.fired]
        if self.late == "oldest" and waiting:
            if min(waiting) not in joined:
                self.update(message, entity.windows[min(waiting)].value)
        else:
            entity.dropped += 1
            yield from self.on_late(message)

    def _fire(self, entity: Any) -> Iterator[Fired]:
        kept = self.keep if self.late == "fire again" else 0.0
        for start in sorted(entity.windows):
            window = entity.windows[start]
            end = self.grid.end(start)
            if end <= entity.clock and not window.fired:
                window.fired = True
                yield self._fired(start, window)
            if end + kept <= entity.clock:
                del entity.windows[start]

    def _fired(self, start: float, window: Any) -> Fired:
        return Fired(start, self.grid.end(start), copy.deepcopy(window.value))


def session(
    name: str,
    accumulator: type,
    update: Update,
    time: Time,
    gap: float,
    combine: Callable[[Any, Any], None],
    delay: float = 0.0,
    on_late: OnLate = lambda message: (),
) -> StateFunction:
    """Messages of a key that follow each other within ``gap`` seconds; late ones are dropped.

    Args:
        name: of the step and its state.
        accumulator: a dataclass, made anew for each session.
        update: adds a message to an accumulator, in place.
        time: event time of a message, in seconds.
        gap: a session ends this long after its last message.
        combine: adds the second accumulator to the first, in place, when a message out of order
            joins two sessions.
        delay: by how much the clock follows the latest event time.
        on_late: dropped message → messages that the step gives instead.
    """
    _positive(name, gap=gap)
    one = make_dataclass(
        "Session",
        [
            ("start", float),
            ("last", float),
            ("value", accumulator, field(default_factory=accumulator)),
        ],
    )
    entity = make_dataclass(
        "Sessions",
        [
            ("clock", float, -math.inf),
            ("dropped", int, 0),
            ("sessions", list[one], field(default_factory=list)),  # type: ignore[valid-type]
        ],
    )

    def apply(message: Any, kept: Any) -> list[Any]:
        at = message.time if isinstance(message, Tick) else event_time(time(message))
        late = [] if isinstance(message, Tick) else take(message, at, kept)
        kept.clock = max(kept.clock, at - float(delay))
        over = [s for s in kept.sessions if s.last + gap <= kept.clock]
        kept.sessions = [s for s in kept.sessions if s not in over]
        return [*late, *(Fired(s.start, s.last + gap, s.value) for s in over)]

    def take(message: Any, at: float, kept: Any) -> list[Any]:
        near = [s for s in kept.sessions if s.start - gap < at < s.last + gap]
        if not near and at + gap <= kept.clock:
            kept.dropped += 1
            return list(on_late(message))
        joined = near[0] if near else one(at, at)
        update(message, joined.value)
        for other in near[1:]:
            combine(joined.value, other.value)
        joined.start = min([at, *(s.start for s in near)])
        joined.last = max([at, *(s.last for s in near)])
        rest = [s for s in kept.sessions if s not in near]
        kept.sessions = sorted([*rest, joined], key=lambda s: s.start)
        return []

    return _function(name, entity, apply)


def _function(name: str, entity: type, apply: Callable[[Any, Any], Any]) -> StateFunction:
    apply.__name__ = name
    return takes_ticks(state_computation_multi(state=state_entity(entity, name=name))(apply))


def _positive(name: str, **lengths: float) -> None:
    for what, length in lengths.items():
        if not length > 0:
            raise UsageError(f"window {name}: {what} must be more than 0, got {length}")
