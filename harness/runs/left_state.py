"""The state that a run leaves, against that of the sequential interpreter: what no output shows
yet, and the next message of its key would.

The outputs come first. Where they have lost, repeated or changed something, the state has too, and
nothing more is said of it; where they leave effectively-once, a wrong entity is a mistake of its
own. So is a wrong number of failed messages, which goes with the state from batch to batch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bettong.engine import Application
from bettong.engine.functions import State
from bettong.engine.interpreter import Interpretation
from bettong.engine.keys import HASH_SPACE, Key, parse
from bettong.engine.state.entities import FileCache
from bettong.engine.state.manifest import Manifest, empty, stored
from bettong.engine.state.query import version
from bettong.engine.state.scan import scan
from bettong.engine.state.store import LocalStore, Store
from bettong.harness.checkers import check_state
from bettong.harness.checkers.records import same
from bettong.harness.cluster.layout import Layout
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly

Entities = Mapping[str, Mapping[Key, Any]]


@dataclass(frozen=True, slots=True)
class LeftState:
    """What the newest manifest names.

    Attributes:
        entities: for each state its entities by key.
        failed: for each step on how many messages it has failed.
        unreadable: why none of this can be read; empty when it can.
    """

    entities: Entities = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    unreadable: str = ""


def left_state(application: Application, layout: Layout) -> LeftState:
    """The state that is on the disk; only to be asked when no driver is at work."""
    store = LocalStore(layout.checkpoint / "state")
    try:
        manifest = version(store) if stored(store) else empty(application.name)
        entities = {s.name: _entities(s, store, manifest) for s in application.states}
    except (BettongError, OSError) as e:
        return LeftState(unreadable=str(e))
    return LeftState(entities, dict(manifest.failed))


def _entities(state: State, store: Store, manifest: Manifest) -> Mapping[Key, Any]:
    found = scan(
        state, FileCache(store), manifest.files_of(state.name, 0, HASH_SPACE), 0, HASH_SPACE
    )
    decoded = state.codec.decode(found.column, state.codec.version)
    return dict(zip(map(parse, found.keys), decoded, strict=True))


def check_left_state(
    application: Application, expected: Interpretation, left: LeftState
) -> tuple[Anomaly, ...]:
    """A StateDivergence for each entity and each number of failures that is not the interpreter's.

    Of entities whose class has no equality, such as one that a pickle holds, it is only judged
    whether they are there.
    """
    if left.unreadable:
        return (Anomaly("StateDivergence", seen=left.unreadable, note="cannot be read"),)
    several = len(application.states) > 1
    wanted: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    for state in application.states:
        of_state = f"{state.name} of " if several else ""
        entities = expected.state[state.name]
        right = dict(zip(entities, _as_written(state, entities), strict=True))
        comparable = _comparable(state, right)
        for found, values in ((wanted, right), (seen, left.entities[state.name])):
            found |= {f"{of_state}{key!r}": comparable(value) for key, value in values.items()}
    different = (
        replace(a, expected=_reported(a.expected), seen=_reported(a.seen))
        for a in check_state(wanted, seen)
    )
    return (*different, *_failures(expected, left))


def _as_written(state: State, entities: Mapping[Key, Any]) -> list[Any]:
    """The entities as they come back from the disk."""
    return state.codec.decode(state.codec.encode(list(entities.values())), state.codec.version)


def _comparable(state: State, right: Mapping[Key, Any]) -> Callable[[Any], Any]:
    """What of entities can be compared, which is nothing where one does not equal its own copy."""
    copies = _as_written(state, right)
    alike = all(same(_fields(a), _fields(b)) for a, b in zip(right.values(), copies, strict=True))
    return _fields if alike else lambda entity: "an entity"


def _fields(entity: Any) -> Any:
    if dataclasses.is_dataclass(entity) and not isinstance(entity, type):
        return dataclasses.asdict(entity)
    return entity


def _reported(value: Any) -> Any:
    """A value as a result can hold it: of JSON, or in words."""
    if isinstance(value, Mapping):
        return {str(name): _reported(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_reported(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((_reported(v) for v in value), key=repr)
    plain = value is None or isinstance(value, bool | int | str)
    return value if plain or (isinstance(value, float) and math.isfinite(value)) else repr(value)


def _failures(expected: Interpretation, left: LeftState) -> tuple[Anomaly, ...]:
    steps = sorted(expected.failed.keys() | left.failed.keys())
    numbers = ((s, expected.failed.get(s, 0), left.failed.get(s, 0)) for s in steps)
    return tuple(
        Anomaly(
            "StateDivergence",
            expected={"step": step, "failed": wanted},
            seen={"step": step, "failed": seen},
            note=f"step {step} has failed on {wanted} messages, {seen} are counted",
        )
        for step, wanted, seen in numbers
        if wanted != seen
    )
