"""Messages through the stateless steps between two places where they are moved or meet state."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from bettong.engine.batch.items import Items, append_path, concat, key_column, pad_paths
from bettong.engine.batch.plan import Plan
from bettong.engine.errors import UserFunctionError
from bettong.lineage.errors import BettongError


class Flow:
    """Pushes messages forward and gathers those that arrive where they are to be moved.

    Attributes:
        arrived: for each step's number the messages that wait to be moved to it; for a sink
            their values are encoded already.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._arrived: dict[int, list[Items]] = {}

    @property
    def arrived(self) -> dict[int, Items]:
        return {number: concat(parts) for number, parts in self._arrived.items()}

    def source(self, number: int, first: int, data: list[bytes]) -> None:
        """Messages of a source from the one numbered ``first`` on, not yet decoded."""
        node = self._plan.nodes[number]
        items = Items(
            np.full(len(data), self._plan.streams.index(node.name), np.int16),
            np.arange(first, first + len(data), dtype=np.int64),
            np.empty((len(data), 0), np.int32),
            None,
            list(data),
        )
        self.push(number, items.with_values(self.apply(number, items, items.values)))

    def push(self, number: int, items: Items) -> None:
        """Hand what a step gave to all that it feeds."""
        for edge in self._plan.edges[number]:
            self._enter(edge.to, edge.place, items)

    def _enter(self, number: int, place: int, items: Items) -> None:
        if not len(items):
            return
        operation = self._plan.nodes[number].operation
        match operation:
            case "merge":
                self.push(number, self._renamed(number, place, items))
            case "computation":
                self.push(number, present(items, self.apply(number, items, items.values)))
            case "computation_multi":
                self.push(number, items.one_to_many(self.many(number, items, items.values)))
            case "filter":
                keep = np.array(self.apply(number, items, items.values), bool)
                self.push(number, items.take(np.flatnonzero(keep)))
            case "key_by":
                self.push(number, self._keyed(number, items))
            case "sink":
                data = self.apply(number, items, items.values)
                self._arrived.setdefault(number, []).append(items.with_values(data))
            case _:
                self._arrived.setdefault(number, []).append(items)

    def _renamed(self, number: int, place: int, items: Items) -> Items:
        node = self._plan.nodes[number]
        width = self._plan.app.depth[node]
        if number in self._plan.overlapping:
            shorter = pad_paths(items.paths, width - 1)
            paths = append_path(shorter, np.full(len(items), place))
        else:
            paths = pad_paths(items.paths, width)
        keys = items.keys if node.keyed else None
        return Items(items.streams, items.numbers, paths, keys, items.values)

    def _keyed(self, number: int, items: Items) -> Items:
        keys = self.apply(number, items, items.values)
        try:
            column = key_column(keys)
        except BettongError as e:
            name = self._plan.nodes[number].name
            raise UserFunctionError(f"step {name}: {e}") from e
        return Items(items.streams, items.numbers, items.paths, column, items.values)

    def apply(self, number: int, items: Items, *arguments: Any) -> list[Any]:
        """What a step's function gives for each message."""
        function = self._plan.nodes[number].function
        assert function is not None
        return self._call(number, items, function.call, arguments)

    def many(self, number: int, items: Items, *arguments: Any) -> list[list[Any]]:
        """What a one-to-many step's function gives for each message."""
        function = self._plan.nodes[number].function
        assert function is not None
        call = function.call
        return self._call(number, items, lambda *values: list(call(*values)), arguments)

    def _call(
        self, number: int, items: Items, call: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> list[Any]:
        results: list[Any] = []
        try:
            results.extend(map(call, *arguments))
        except Exception as e:  # whatever a user's function raises, on the message after the last
            place = len(results)
            message = items.id_of(place, self._plan.streams)
            name = self._plan.nodes[number].name
            raise UserFunctionError.of(name, message, items.key_of(place), e) from e
        return results


def present(items: Items, results: list[Any]) -> Items:
    """Messages with their results, without those whose result is None."""
    if any(map(is_, results, repeat(None))):
        places = [i for i, r in enumerate(results) if r is not None]
        return items.with_values(results).take(np.array(places, np.int64))
    return items.with_values(results)
