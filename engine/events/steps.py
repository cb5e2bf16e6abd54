"""An application as a list of calls that take one message from its source to the sinks.

The calls of a message are done in the order of the application's levels, each with all that the
calls before have given: what a message does does not depend on how the application is run.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bettong.engine.errors import DeadLetter, UserFunctionError
from bettong.engine.graph import Application
from bettong.engine.ids import VISIT_WIDTH, MessageId, visits
from bettong.engine.keys import EVERY, Key, canonical, hash_bytes, parse, reported
from bettong.engine.node import Node, overlapping, upstream
from bettong.lineage.errors import UsageError

Path = tuple[int, ...]
Item = tuple[Path, "Key | None", Any]
Slots = list[list[Item]]
"""For each step what it has given for the message at hand."""

Call = Callable[[str, int, Slots], None]
"""(stream, number of the message, slots): does one step."""

Deliver = Callable[[str, str, "Key | None", bytes], None]
"""(sink, id, key, data): takes one output."""

Entities = dict[Key, Any]


class Compiled:
    """The calls of an application.

    Attributes:
        entities: of each state by its name.
        touched: for each state the keys whose entities messages have met, until cleared.

    Raises:
        UsageError: the application has steps over arrays.
    """

    def __init__(self, app: Application, deliver: Deliver) -> None:
        self._app = app
        self._deliver = deliver
        self.nodes = sorted(app.nodes, key=lambda n: app.level[n])
        for node in self.nodes:
            if node.function is not None and node.function.arrays:
                raise UsageError(f"step {node.name} takes many messages at a time, not one by one")
        self._place = {node: place for place, node in enumerate(self.nodes)}
        self.entities: dict[str, Entities] = {s.name: {} for s in app.states}
        self.touched: dict[str, set[Key]] = {s.name: set() for s in app.states}
        made = {node: self._call(node) for node in self.nodes if node.operation != "dead_letters"}
        self.calls: dict[str, list[Call]] = {
            source.name: [made[n] for n in self.nodes if n in made and self._meets(n, source)]
            for source in app.sources
        }

    def slots(self, data: bytes) -> Slots:
        """The slots of a message that has come; it stands in the last."""
        return [[] for _ in self.nodes] + [[((), None, data)]]

    def _meets(self, node: Node, source: Node) -> bool:
        return node is source or source in upstream(node)

    def _call(self, node: Node) -> Call:
        to = self._place[node]
        if node.operation == "merge":
            return self._merge(node, to)
        at = -1 if node.operation == "source" else self._place[node.inputs[0]]
        do = self._one(node)
        frail = self._app.on_error != "fail"
        visits_all = node.visits

        def call(stream: str, number: int, slots: Slots) -> None:
            out = slots[to]
            for item in self._met(node, slots[at]) if visits_all else slots[at]:
                try:
                    do(out, stream, number, item)
                except Exception as e:  # whatever a user's function raises
                    if not frail:
                        ident = MessageId(stream, number, item[0])
                        raise UserFunctionError.of(node.name, ident, reported(item[1]), e) from e
                    self._record_failure(node, stream, number, item, e)

        return call

    def _met(self, node: Node, items: Iterable[Item]) -> Iterator[Item]:
        """The messages, those for every key once for each entity that there is."""
        entities, forget = self.entities[node.state.name], node.state.forget
        width = self._app.depth[node] - VISIT_WIDTH
        width -= node.operation == "state_computation_multi"
        for item in items:
            path, key, value = item
            if key is not EVERY:
                yield item
                continue
            for visit, data in visits((hash_bytes(d), d) for d in map(canonical, entities)):
                each = parse(data)
                yield (*_padded(path, width), *visit), each, value
                if forget is not None and forget(entities[each]):
                    del entities[each]

    def _one(self, node: Node) -> Callable[[list[Item], str, int, Item], None]:
        """What a step does with one message: gives what comes of it, or raises and gives
        nothing."""
        if node.function is None:
            return lambda out, stream, number, item: out.append((item[0], EVERY, item[2]))
        function = node.function.call
        width = self._app.depth[node] - 1
        match node.operation:
            case "source" | "computation":
                keeps_none = node.operation == "source"

                def change(out: list[Item], stream: str, number: int, item: Item) -> None:
                    result = function(item[2])
                    if result is not None or keeps_none:
                        out.append((item[0], item[1], result))

                return change
            case "computation_multi":

                def spread(out: list[Item], stream: str, number: int, item: Item) -> None:
                    out += _numbered(item, width, function(item[2]))

                return spread
            case "filter":

                def keep(out: list[Item], stream: str, number: int, item: Item) -> None:
                    if function(item[2]):
                        out.append(item)

                return keep
            case "key_by":

                def key(out: list[Item], stream: str, number: int, item: Item) -> None:
                    found = function(item[2])
                    if type(found) is not str or not found.isascii():
                        canonical(found)
                    out.append((item[0], found, item[2]))

                return key
            case "sink":

                def give(out: list[Item], stream: str, number: int, item: Item) -> None:
                    path, key, value = item
                    ident = f"{stream}/{number}"
                    if path:
                        ident += "".join([f".{k}" for k in path if k >= 0])
                    self._deliver(node.name, ident, key, function(value))

                return give
            case _:
                return self._stateful(node, function, width)

    def _stateful(
        self, node: Node, function: Callable[..., Any], width: int
    ) -> Callable[[list[Item], str, int, Item], None]:
        entities, make = self.entities[node.state.name], node.state.cls
        touched = self.touched[node.state.name]
        multi = node.operation == "state_computation_multi"
        frail = self._app.on_error != "fail"

        def meet(out: list[Item], stream: str, number: int, item: Item) -> None:
            path, key, value = item
            assert key is not None
            entity = entities.get(key)
            if entity is None:
                entity = entities[key] = make()
            touched.add(key)
            before = copy.deepcopy(entity) if frail else None
            try:
                result = function(value, entity)
                if multi:
                    out += _numbered(item, width, result)
                elif result is not None:
                    out.append((path, key, result))
            except Exception:
                if frail:
                    entities[key] = before
                raise

        return meet

    def _merge(self, node: Node, to: int) -> Call:
        inputs = [self._place[i] for i in node.inputs]
        width, apart, keyed = self._app.depth[node], overlapping(node), node.keyed

        def call(stream: str, number: int, slots: Slots) -> None:
            merged = [
                (
                    (*_padded(path, width - 1), place) if apart else _padded(path, width),
                    key if keyed else None,
                    value,
                )
                for place, at in enumerate(inputs)
                for path, key, value in slots[at]
            ]
            merged.sort(key=lambda item: item[0])
            slots[to] = merged

        return call

    def _record_failure(
        self, node: Node, stream: str, number: int, item: Item, error: Exception
    ) -> None:
        grave = self._app.dead_letters
        if grave is None or node is grave:
            return
        path, key, value = item
        text = f"{type(error).__name__}: {error}"
        ident = str(MessageId(stream, number, path))
        letter = DeadLetter(node.name, ident, reported(key), text, value)
        step = self._app.nodes.index(node)
        named = (*_padded(path, self._app.depth[grave] - 1), step)
        assert grave.function is not None
        with contextlib.suppress(Exception):  # as every message that a sink cannot encode
            data = grave.function.call(letter)
            self._deliver(grave.name, str(MessageId(stream, number, named)), None, data)


def _numbered(item: Item, width: int, results: Iterable[Any]) -> list[Item]:
    path, key, _ = item
    longer = _padded(path, width)
    return [((*longer, k), key, result) for k, result in enumerate(results)]


def _padded(path: Path, width: int) -> Path:
    return path + (-1,) * (width - len(path))
