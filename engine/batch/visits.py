"""Messages for every key meet all entities that there are: state steps of a batch that has some."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bettong.engine.batch.items import IntArray, Items, KeyColumn, pad_paths, plain
from bettong.engine.functions import State
from bettong.engine.ids import VISIT_WIDTH, visits
from bettong.engine.keys import EVERY_CANONICAL
from bettong.engine.state.entities import encode_present, entities_of
from bettong.engine.state.scan import Stored

NO_VISIT = (-1,) * VISIT_WIDTH


@dataclass
class Visited:
    """What became of the messages of a batch, one for each entity that a message has met.

    Attributes:
        places: of the messages.
        codes: of the entities' keys.
        paths: what each meeting appends to the message's id.
        results: of the function.
        failures: by their places in the results.
    """

    places: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    paths: list[tuple[int, ...]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)

    def items(self, items: Items, keys: KeyColumn) -> Items:
        """The messages, each as often as it met an entity, with that one's key."""
        taken = items.take(np.array(self.places, np.int64))
        codes = np.array(self.codes, np.int64)
        return Items(
            taken.streams,
            taken.numbers,
            taken.paths,
            KeyColumn(codes, keys.keys, keys.hashes).used(),
            taken.values,
        )


class Meetings:
    """The entities of a state partition, all of them, and the messages that they meet.

    Attributes:
        keys: of the entities that were there, and of those that messages of the batch are for.
    """

    def __init__(self, state: State, stored: Stored, items: Items, careful: bool) -> None:
        assert items.keys is not None
        self._state = state
        self._stored = stored
        self._careful = careful
        self._entities: dict[int, Any] = dict(enumerate(entities_of(state, stored.column)))
        self._met: set[int] = set()
        known = {key: code for code, key in enumerate(stored.keys)}
        hashes = list(stored.hashes)
        codes = []
        for key, hashed in zip(items.keys.keys, items.keys.hashes.tolist(), strict=True):
            codes.append(known.setdefault(key, len(known)))
            if codes[-1] == len(hashes):
                hashes.append(hashed)
        self.keys = KeyColumn(
            np.array(codes, np.int64)[items.keys.codes], list(known), np.array(hashes, np.uint64)
        )
        self._codes = known
        self._hashes = hashes

    def run(self, calls: Callable[[int], Callable[..., Any]], items: Items) -> Visited:
        """Let all messages meet their entities.

        Args:
            calls: gives the function of the message at a place.
            items: the messages, in their order.
        """
        visited = Visited()
        for place, (code, value) in enumerate(
            zip(self.keys.codes.tolist(), plain(items.values), strict=True)
        ):
            if self.keys.keys[code] != EVERY_CANONICAL:
                self._meet(visited, calls(place), place, code, value, NO_VISIT)
                continue
            for path, each in self._everybody():
                self._meet(visited, calls(place), place, each, value, path)
                if self._state.forget is not None and self._state.forget(self._entities[each]):
                    del self._entities[each]
        return visited

    def _everybody(self) -> list[tuple[tuple[int, ...], int]]:
        keys = ((self._hashes[code], self.keys.keys[code]) for code in self._entities)
        return [(path, self._codes[key]) for path, key in visits(keys)]

    def _meet(
        self,
        visited: Visited,
        call: Callable[..., Any],
        place: int,
        code: int,
        value: Any,
        path: tuple[int, ...],
    ) -> None:
        if code not in self._entities:
            self._entities[code] = self._state.cls()
        self._met.add(code)
        before = copy.deepcopy(self._entities[code]) if self._careful else None
        result = None
        try:
            result = call(value, self._entities[code])
        except Exception as e:  # whatever a user's function raises
            self._entities[code] = before
            visited.failures[len(visited.results)] = e
        visited.places.append(place)
        visited.codes.append(code)
        visited.paths.append(path)
        visited.results.append(result)

    def changed(self) -> tuple[list[bytes], list[int], list[Any]]:
        """Keys, hashes and entities that are not as they were; None is for one that is gone."""
        met = sorted(self._met)
        entities = [self._entities.get(code) for code in met]
        column = encode_present(self._state, entities)
        count = len(self._stored.keys)
        kept = [
            i
            for i, code in enumerate(met)
            if (column[i] != self._stored.column[code] if code < count else entities[i] is not None)
        ]
        codes = [met[i] for i in kept]
        return (
            [self.keys.keys[c] for c in codes],
            [self._hashes[c] for c in codes],
            [entities[i] for i in kept],
        )


def with_visits(items: Items, paths: IntArray | None) -> Items:
    """The messages with what their meetings append to their ids; None when none is for every
    key."""
    width = items.paths.shape[1]
    longer = pad_paths(items.paths, width + VISIT_WIDTH)
    if paths is not None:
        longer[:, width:] = paths
    return replace(items, paths=longer)
