"""The sequential interpreter: an application applied to its messages, one at a time.

It shares the user's functions with the runners and nothing else, so that it can say what they
should have done.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bettong.engine.errors import DeadLetter, UserFunctionError
from bettong.engine.functions import Function, StateFunction
from bettong.engine.graph import Application
from bettong.engine.ids import MessageId, visits
from bettong.engine.keys import EVERY, Key, canonical, hash_bytes, parse, reported
from bettong.engine.node import STATEFUL, Node, overlapping
from bettong.lineage.errors import UsageError


class Output(NamedTuple):
    """One output: the sink's name, the output's id, its key (None without one) and its bytes."""

    sink: str
    id: str
    key: Key | None
    data: bytes


@dataclass(frozen=True)
class Interpretation:
    """What an application does with its input.

    Attributes:
        outputs: in the order in which they came to be.
        state: for each state its entities by key.
        failed: for each step on how many messages its function has failed.
    """

    outputs: list[Output]
    state: dict[str, dict[Key, Any]]
    failed: Mapping[str, int]


class _Item(NamedTuple):
    id: MessageId
    key: Key | None
    value: Any


def interpret(
    app: Application,
    streams: Mapping[str, Sequence[bytes]],
    boundaries: Sequence[Mapping[str, int]] | None = None,
) -> Interpretation:
    """Run the application over whole streams.

    Args:
        app: the application.
        streams: the messages of each source.
        boundaries: for each micro-batch how far each stream was read, when the batches were not
            aligned; only of importance to applications in which several sources meet. By default
            message n of every stream comes before message n+1 of any.

    Raises:
        UsageError: a stream is missing or unknown.
        UserFunctionError: a user's function failed.
    """
    names = [s.name for s in app.sources]
    if set(names) != set(streams):
        raise UsageError(
            f"application {app.name} reads {sorted(names)}, input was given for {sorted(streams)}"
        )
    run = Interpreter(app)
    for stream, number in _order(names, streams, boundaries):
        run.message(stream, number, streams[stream][number])
    return Interpretation(run.outputs, run.state, run.failed)


def _order(
    names: list[str],
    streams: Mapping[str, Sequence[bytes]],
    boundaries: Sequence[Mapping[str, int]] | None,
) -> Iterator[tuple[str, int]]:
    ends = boundaries if boundaries is not None else [{n: len(streams[n]) for n in names}]
    done = dict.fromkeys(names, 0)
    for end in ends:
        batch = [(n, place) for place, s in enumerate(names) for n in range(done[s], end[s])]
        for number, place in sorted(batch):
            yield names[place], number
        done = {s: end[s] for s in names}


class Interpreter:
    """Takes messages one by one.

    Attributes:
        outputs: so far, in the order in which they came to be.
        state: for each state its entities by key.
        failed: for each step on how many messages its function has failed.
    """

    def __init__(self, app: Application) -> None:
        self.app = app
        self.outputs: list[Output] = []
        self.state: dict[str, dict[Key, Any]] = {s.name: {} for s in app.states}
        self.failed: Counter[str] = Counter()

    def message(self, stream: str, number: int, data: bytes) -> None:
        """Carry one message through the whole graph, step by step in the graph's order; a step
        meets its messages in the order of their ids."""
        found: dict[Node, list[_Item]] = {}
        for node in self._steps():
            if node.operation == "source":
                items = [_Item(MessageId(stream, number), None, data)]
                found[node] = self._apply(node, items) if node.name == stream else []
            elif node.operation == "merge":
                found[node] = self._merge(node, [found[i] for i in node.inputs])
            elif node.operation != "dead_letters":
                found[node] = self._apply(node, found[node.inputs[0]])

    def _steps(self) -> list[Node]:
        return sorted(self.app.nodes, key=lambda n: self.app.level[n])

    def _merge(self, node: Node, inputs: list[list[_Item]]) -> list[_Item]:
        width, apart = self.app.depth[node], overlapping(node)
        merged = []
        for place, items in enumerate(inputs):
            for ident, key, value in items:
                longer = _extended(ident, width - 1, place) if apart else _padded(ident, width)
                merged.append(_Item(longer, key if node.keyed else None, value))
        return sorted(merged, key=lambda i: i.id.path)

    def _apply(self, node: Node, items: list[_Item]) -> list[_Item]:
        found: list[_Item] = []
        for item in items:
            if node.operation in STATEFUL and item.key is EVERY:
                found += self._visit(node, item)
                continue
            before = None
            if node.operation in STATEFUL and self.app.on_error != "fail":
                before = copy.deepcopy(self._entity(node, item.key))
            try:
                found += self._results(node, item)
            except Exception as e:  # whatever a user's function raises
                if self.app.on_error == "fail":
                    raise UserFunctionError.of(node.name, item.id, reported(item.key), e) from e
                if item.key is not None and node.operation in STATEFUL:
                    self.state[node.state.name][item.key] = before
                self.failed[node.name] += 1
                self._record_failure(node, item, e)
        return found

    def _visit(self, node: Node, item: _Item) -> list[_Item]:
        """Let a message for every key meet all entities that there are."""
        found: list[_Item] = []
        entities = self.state[node.state.name]
        met = visits((hash_bytes(data), data) for data in map(canonical, entities))
        last = self.app.depth[node] - (node.operation == "state_computation_multi")
        for path, data in met:
            shorter = _padded(item.id, last - len(path))
            ident = shorter._replace(path=shorter.path + path)
            found += self._apply(node, [_Item(ident, key := parse(data), item.value)])
            if node.state.forget is not None and node.state.forget(entities[key]):
                del entities[key]
        return found

    def _results(self, node: Node, item: _Item) -> list[_Item]:
        ident, key, value = item
        if node.function is None:
            return [_Item(ident, EVERY, value)]
        call = node.function.call
        if node.function.arrays:
            call = _one_by_one(node.function)
        elif isinstance(value, OneOfArray):
            value = value.plain()
        match node.operation:
            case "source":
                return [_Item(ident, key, call(value))]
            case "computation":
                return _present(ident, key, call(value))
            case "computation_multi":
                return self._numbered(node, item, call(value))
            case "filter":
                return [item] if call(value) else []
            case "key_by":
                canonical(found := call(value))
                return [_Item(ident, found, value)]
            case "state_computation":
                return _present(ident, key, call(value, self._entity(node, key)))
            case "state_computation_multi":
                return self._numbered(node, item, call(value, self._entity(node, key)))
            case _:
                self.outputs.append(Output(node.name, str(ident), key, call(value)))
                return []

    def _record_failure(self, node: Node, item: _Item, error: Exception) -> None:
        grave = self.app.dead_letters
        if grave is None or node is grave:
            return
        value = item.value.plain() if isinstance(item.value, OneOfArray) else item.value
        letter = DeadLetter(
            node.name, str(item.id), reported(item.key), f"{type(error).__name__}: {error}", value
        )
        ident = _extended(item.id, self.app.depth[grave] - 1, self.app.nodes.index(node))
        self._apply(grave, [_Item(ident, None, letter)])

    def _entity(self, node: Node, key: Key | None) -> Any:
        assert key is not None
        entities = self.state[node.state.name]
        if key not in entities:
            entities[key] = node.state.cls()
        return entities[key]

    def _numbered(self, node: Node, item: _Item, results: Any) -> list[_Item]:
        last = self.app.depth[node] - 1
        return [
            _Item(_extended(item.id, last, k), item.key, result) for k, result in enumerate(results)
        ]


def _present(ident: MessageId, key: Key | None, result: Any) -> list[_Item]:
    return [] if result is None else [_Item(ident, key, result)]


class OneOfArray(NamedTuple):
    """A message that is an element of an array, which knows its type."""

    array: Any

    def plain(self) -> Any:
        return self.array[0].as_py()


def _one_by_one(function: Function) -> Callable[..., Any]:
    """A function over arrays as one over messages."""

    def call(value: Any, entity: Any = None) -> Any:
        import pyarrow as pa

        array = value.array if isinstance(value, OneOfArray) else pa.array([value])
        if isinstance(function, StateFunction):
            result = _on_columns(function, array, entity)
        else:
            result = function.call(array)
        if result is None or not result[0].is_valid:
            return None
        if function.kind in ("filter", "key_extractor", "encoder"):
            return result[0].as_py()
        return OneOfArray(result)

    return call


def _on_columns(function: StateFunction, array: Any, entity: Any) -> Any:
    """A state computation over arrays on one message; changes the entity as it changes columns."""
    import numpy as np

    names = [f.name for f in dataclasses.fields(entity)]
    columns = {name: np.array([getattr(entity, name)]) for name in names}
    result = function.call(array, np.zeros(1, np.int64), columns)
    for name in names:
        setattr(entity, name, columns[name][0].item())
    return result


def _padded(ident: MessageId, width: int) -> MessageId:
    return ident._replace(path=ident.path + (-1,) * (width - len(ident.path)))


def _extended(ident: MessageId, width: int, last: int) -> MessageId:
    return ident._replace(path=(*_padded(ident, width).path, last))
