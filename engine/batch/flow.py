"""Messages through the stateless steps between two places where they are moved or meet state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from operator import is_
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.batch.items import (
    IntArray,
    Items,
    Values,
    append_path,
    concat,
    every_key,
    key_column,
    pad_paths,
    plain,
)
from bettong.engine.batch.plan import Plan
from bettong.engine.errors import DeadLetter, UserFunctionError
from bettong.engine.functions import Function
from bettong.engine.keys import Key, KeyTypeError, canonical
from bettong.engine.metrics.meter import Meter, NoMeter

Failures = Mapping[int, Exception]
"""Errors of a user's function by the places of the messages on which it failed."""


class Flow:
    """Pushes messages forward and gathers those that arrive where they are to be moved.

    Attributes:
        meter: is told how long each step took.
        arrived: for each step's number the messages that wait to be moved to it; for a sink
            their values are encoded already.
        failed: for each step's name the number of messages on which its function failed.
    """

    def __init__(self, plan: Plan, meter: Meter | None = None) -> None:
        self._plan = plan
        self.meter = meter or NoMeter()
        self._arrived: dict[int, list[Items]] = {}
        self.failed: Counter[str] = Counter()

    @property
    def arrived(self) -> dict[int, Items]:
        return {number: concat(parts) for number, parts in self._arrived.items()}

    def source(self, name: str, stream: int, numbers: IntArray, data: Values) -> None:
        """Messages of a source, not yet decoded.

        Args:
            name: of the source.
            stream: the code of the stream that they are of.
            numbers: of the messages.
            data: of the messages.
        """
        number = self._plan.source(name)
        items = Items(
            np.full(len(data), stream, np.int16),
            numbers,
            np.empty((len(data), 0), np.int32),
            None,
            data,
        )
        items, decoded = self._apply(number, items)
        self.push(number, items.with_values(decoded))

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
                self.push(number, present(*self._apply(number, items)))
            case "computation_multi":
                items, groups = self._apply(number, items, listed(self._plan.call(number)))
                self.push(number, items.one_to_many(plain(groups)))
            case "filter":
                items, keep = self._apply(number, items)
                self.push(number, items.take(np.flatnonzero(np.array(plain(keep), bool))))
            case "key_by":
                self.push(number, self._keyed(number, items))
            case "every_key":
                self.push(number, replace(items, keys=every_key(len(items))))
            case "sink":
                items, data = self._apply(number, items)
                self._arrive(number, items.with_values(data))
            case _:
                self._arrive(number, items)

    def _arrive(self, number: int, items: Items) -> None:
        if len(items):  # a sink's encoder may have failed on all of them
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
        given, failures = self._call(number, items)
        try:
            column = key_column(_without(given, failures))
        except KeyTypeError:
            extract = self._plan.call(number)
            given, failures = self._call(number, items, lambda value: _checked(extract(value)))
            column = key_column(_without(given, failures))
        kept, _ = self.settle(number, items, given, failures)
        return Items(kept.streams, kept.numbers, kept.paths, column, kept.values)

    def _apply(
        self, number: int, items: Items, call: Callable[[Any], Any] | None = None
    ) -> tuple[Items, Values]:
        """What a step's function gives for each message, and the messages without those on
        which it fails."""
        return self.settle(number, items, *self._call(number, items, call))

    def _call(
        self, number: int, items: Items, call: Callable[[Any], Any] | None = None
    ) -> tuple[Values, Failures]:
        """What a step's function gives for each message, and where it fails."""
        function = self._plan.function(number)
        begin = perf_counter_ns()
        if function.arrays:
            given = run_on_arrays(function, len(items), as_array(items.values))
            self._took(number, items, begin)
            return given, {}
        results, failures = run(call or function.call, plain(items.values))
        self._took(number, items, begin)
        return results, failures

    def _took(self, number: int, items: Items, begin: int) -> None:
        self.meter.step(self._plan.nodes[number].name, len(items), perf_counter_ns() - begin)

    def settle(
        self, number: int, items: Items, results: Values, failures: Failures
    ) -> tuple[Items, Values]:
        """Do what the application wants with the messages on which a function failed.

        Returns:
            The other messages and their results.

        Raises:
            UserFunctionError: it wants to fail; the error is of the first of the messages.
        """
        if not failures:
            return items, results
        node, policy = self._plan.nodes[number], self._plan.app.on_error
        if policy == "fail":
            place, error = min(failures.items(), key=lambda f: f[0])
            message = items.id_of(place, self._plan.streams)
            raise UserFunctionError.of(node.name, message, items.key_of(place), error) from error
        self.failed[node.name] += len(failures)
        if policy == "dead letter":
            self._record_failure(number, items, failures)
        kept = np.array([i for i in range(len(items)) if i not in failures], np.int64)
        return items.take(kept), _without(results, failures)

    def _record_failure(self, number: int, items: Items, failures: Failures) -> None:
        grave = self._plan.app.dead_letters
        if grave is None or self._plan.nodes[number] is grave:
            return
        places = sorted(failures)
        letters = [
            DeadLetter(
                self._plan.nodes[number].name,
                str(items.id_of(place, self._plan.streams)),
                items.key_of(place),
                f"{type(failures[place]).__name__}: {failures[place]}",
                items.values[place],
            )
            for place in places
        ]
        dead = items.take(np.array(places, np.int64))
        paths = pad_paths(dead.paths, self._plan.app.depth[grave] - 1)
        step = self._plan.app.nodes.index(self._plan.nodes[number])
        named = append_path(paths, np.full(len(dead), step))
        at = self._plan.number[grave]
        buried = Items(dead.streams, dead.numbers, named, None, letters)
        buried, data = self._apply(at, buried)
        self._arrive(at, buried.with_values(data))


def run(call: Callable[..., Any], *arguments: Sequence[Any]) -> tuple[list[Any], Failures]:
    """What a function gives for each message; None where it fails, and why."""
    results: list[Any] = []
    failures: dict[int, Exception] = {}
    waiting = map(call, *arguments)
    while True:
        try:
            results.extend(waiting)
            return results, failures
        except Exception as e:  # whatever a user's function raises, on the message after the last
            failures[len(results)] = e
            results.append(None)


def _without(results: Values, failures: Failures) -> Values:
    """The results of the messages on which the function did not fail."""
    return [r for i, r in enumerate(results) if i not in failures] if failures else results


def listed(call: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The same with its results in a list, so that a generator's errors come at once."""
    return lambda *values: list(call(*values))


def as_array(values: Values) -> pa.Array:
    """Values for a function over arrays; raises UserFunctionError when they make none."""
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError) as e:
        raise UserFunctionError(f"messages make no Arrow array: {e}") from e


def run_on_arrays(function: Function, count: int, *arguments: Any) -> Values:
    """What a function over arrays gives.

    Raises:
        UserFunctionError: it fails, or does not give a result for each message.
    """
    try:
        results = function.call(*arguments)
    except Exception as e:  # whatever a user's function raises
        text = f"step {function.name} failed: {type(e).__name__}: {e}"
        raise UserFunctionError(text) from e
    if results is None:
        return [None] * count
    if isinstance(results, pa.ChunkedArray):
        results = results.combine_chunks()
    if not isinstance(results, pa.Array) or len(results) != count:
        raise UserFunctionError(
            f"step {function.name} gave {type(results).__name__} for {count} messages: a function "
            "over arrays gives an Arrow array of the same length"
        )
    return results


def present(items: Items, results: Values) -> Items:
    """Messages with their results, without those whose result is None."""
    if isinstance(results, pa.Array):
        kept = items.with_values(results)
        return kept.take(np.flatnonzero(results.is_valid())) if results.null_count else kept
    if any(map(is_, results, repeat(None))):
        places = [i for i, r in enumerate(results) if r is not None]
        return items.with_values(results).take(np.array(places, np.int64))
    return items.with_values(results)


def _checked(key: Key) -> Key:
    canonical(key)
    return key
