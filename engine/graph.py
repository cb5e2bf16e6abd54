"""The application graph: what happens to messages, with no word about where.

Streams are built left to right and never change: each method gives a new stream. What they build
is checked as a whole by :func:`application`, which refuses a graph that cannot run and names the
step at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from bettong.engine.functions import Decoder, Function, Kind, State, StateFunction, predicate
from bettong.engine.ids import STREAM_NAME
from bettong.lineage.errors import UsageError

Operation = Literal[
    "source",
    "computation",
    "computation_multi",
    "filter",
    "key_by",
    "state_computation",
    "state_computation_multi",
    "merge",
    "sink",
    "dead_letters",
]

OnError = Literal["fail", "skip", "dead letter"]

STATEFUL: frozenset[Operation] = frozenset({"state_computation", "state_computation_multi"})


class GraphError(UsageError):
    """An application that cannot run; the message names the step."""


@dataclass(frozen=True, eq=False)
class Node:
    """One step of an application; its identity is its place in the graph.

    Attributes:
        operation: what it does.
        name: unique within the application.
        inputs: the steps that feed it.
        function: the user's function, None for a merge.
    """

    operation: Operation
    name: str
    inputs: tuple[Node, ...] = ()
    function: Function | None = None

    def __repr__(self) -> str:
        what = self.function.call.__name__ if self.function else ""
        return f"{self.name}={self.operation}({what})<-{[i.name for i in self.inputs]}"

    @property
    def keyed(self) -> bool:
        """Whether its messages have keys."""
        if self.operation == "merge":
            return all(i.keyed for i in self.inputs)
        return self.operation == "key_by" or any(i.keyed for i in self.inputs)

    @property
    def state(self) -> State:
        """The state of a stateful step."""
        assert isinstance(self.function, StateFunction)
        return self.function.state


_OPERATION: dict[Kind, Operation] = {
    "computation": "computation",
    "computation_multi": "computation_multi",
    "filter": "filter",
    "state_computation": "state_computation",
    "state_computation_multi": "state_computation_multi",
}


@dataclass(frozen=True, eq=False)
class Sink:
    """Where a pipeline ends: the sink's name and the function that makes bytes of a value."""

    name: str
    encoder: Function


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A pipeline that is complete: its last steps."""

    ends: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Stream:
    """Messages at one point of an application."""

    node: Node

    def to(self, function: Function, *, name: str | None = None) -> Stream:
        """Apply a computation, a filter or a state computation.

        Args:
            function: marked with what it does, such as ``@computation``.
            name: name of the step, by default the function's; needed to use a function twice.

        Raises:
            GraphError: the function is not marked, or keeps state and the stream has no key.
        """
        step = name or _named(function)
        if not isinstance(function, Function) or function.kind not in _OPERATION:
            raise GraphError(
                f"step {step}: .to() takes a function marked with @computation, "
                "@computation_multi, @predicate, @state_computation or @state_computation_multi"
            )
        operation = _OPERATION[function.kind]
        if operation in STATEFUL and not self.node.keyed:
            raise GraphError(
                f"step {step} keeps state but its messages have no key: put .key_by(…) before it"
            )
        return Stream(Node(operation, step, (self.node,), function))

    def filter(self, condition: Callable[[Any], bool], *, name: str | None = None) -> Stream:
        """Keep the messages for which the condition holds."""
        marked = condition if isinstance(condition, Function) else predicate(condition)
        return self.to(marked, name=name)

    def key_by(self, extractor: Function, *, name: str | None = None) -> Stream:
        """Give each message the key that the extractor finds in it."""
        step = name or _named(extractor)
        if not isinstance(extractor, Function) or extractor.kind != "key_extractor":
            raise GraphError(f"step {step}: .key_by() takes a function marked @key_extractor")
        return Stream(Node("key_by", step, (self.node,), extractor))

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Join streams into one; its messages keep their keys when all of the streams have keys."""
        streams = (self, *others)
        step = name or "merge(" + ", ".join(s.node.name for s in streams) + ")"
        return Stream(Node("merge", step, tuple(s.node for s in streams)))

    def to_sink(self, sink: Sink) -> Pipeline:
        """End the pipeline in a sink."""
        return self.to_sinks(sink)

    def to_sinks(self, *sinks: Sink) -> Pipeline:
        """End the pipeline in several sinks, each of which gets every message."""
        return Pipeline(tuple(Node("sink", s.name, (self.node,), s.encoder) for s in sinks))

    def done(self) -> Pipeline:
        """End the pipeline without a sink: what it leaves is its state."""
        return Pipeline((self.node,))


def source(name: str, decoder: Decoder) -> Stream:
    """Messages of the named input stream, decoded.

    Where the stream comes from is said when the application is run.
    """
    if not STREAM_NAME.match(name):
        raise GraphError(
            f"source {name!r}: a stream's name is letters, digits, '_' and '-', not first a digit"
        )
    if not isinstance(decoder, Decoder):
        raise GraphError(f"source {name} needs a function marked @decoder, got {decoder!r}")
    return Stream(Node("source", name, (), decoder))


def sink(name: str, encoder: Function) -> Sink:
    """A named sink; where it is, is said when the application is run."""
    if not isinstance(encoder, Function) or encoder.kind != "encoder":
        raise GraphError(f"sink {name} needs a function marked @encoder, got {encoder!r}")
    return Sink(name, encoder)


@dataclass(frozen=True, eq=False)
class Application:
    """A checked graph of steps, in an order in which inputs come before what they feed.

    Attributes:
        name: told to sinks, which keep (application, batch).
        nodes: every step.
        level: for each step the number of state steps on the longest way to it, itself counted;
            steps that share a state have one level. A runner moves messages between workers only
            to get from one level to the next.
        depth: for each step the length of the longest path in the ids of its outputs.
        on_error: what becomes of a message on which a user's function fails.
    """

    name: str
    nodes: tuple[Node, ...]
    level: dict[Node, int] = field(repr=False)
    depth: dict[Node, int] = field(repr=False)
    on_error: OnError = "fail"

    @property
    def sources(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if n.operation == "source")

    @property
    def sinks(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if n.operation in ("sink", "dead_letters"))

    @property
    def dead_letters(self) -> Node | None:
        """The sink of messages on which a function fails."""
        return next((n for n in self.nodes if n.operation == "dead_letters"), None)

    @property
    def states(self) -> tuple[State, ...]:
        found = {n.state.name: n.state for n in self.nodes if n.operation in STATEFUL}
        return tuple(found.values())

    @property
    def levels(self) -> int:
        """The highest level; 0 when no step keeps state."""
        return max(self.level.values())

    def consumers(self, node: Node) -> tuple[Node, ...]:
        """The steps that a step feeds, each as often as it feeds it."""
        return tuple(n for n in self.nodes for i in n.inputs if i is node)


def application(
    name: str, *pipelines: Pipeline | Stream, on_error: Literal["fail", "skip"] | Sink = "fail"
) -> Application:
    """Check the pipelines as a whole and make an application of them.

    Args:
        name: told to sinks.
        pipelines: each with an end.
        on_error: what is done when a user's function fails on a message. ``fail`` ends the query
            before anything of the batch can be seen; ``skip`` counts the message and goes on
            without it; a sink gets a :class:`DeadLetter` for it. The state is then as if the
            message had not come to the step that failed.

    Raises:
        GraphError: nothing to run, a pipeline without an end, names used twice, a function that
            cannot be pickled, a state reached again from a step that shares it.
    """
    if not STREAM_NAME.match(name):
        raise GraphError(f"application {name!r}: a name is letters, digits, '_' and '-'")
    if not pipelines:
        raise GraphError(f"application {name} has no pipeline")
    complete = [p for p in pipelines if isinstance(p, Pipeline)]
    for pipeline in pipelines:
        if not isinstance(pipeline, Pipeline):
            step = pipeline.node.name if isinstance(pipeline, Stream) else repr(pipeline)
            raise GraphError(
                f"application {name}: the pipeline after step {step} has no end: "
                "add .to_sink(…), or .done() when its state is what it leaves"
            )
    policy: OnError = "fail"
    ends = [p.ends for p in complete]
    if isinstance(on_error, Sink):
        policy = "dead letter"
        ends.append((Node("dead_letters", on_error.name, (), on_error.encoder),))
    elif on_error == "skip":
        policy = "skip"
    elif on_error != "fail":
        raise GraphError(f"application {name}: on_error is fail, skip or a sink, got {on_error!r}")
    nodes = tuple(_ordered(ends))
    _check_names(nodes)
    _check_states(nodes)
    _check_picklable(nodes)
    return Application(name, nodes, _levels(nodes), _depths(nodes), policy)


def _named(function: object) -> str:
    return function.name if isinstance(function, Function) else repr(function)


def _ordered(ends: Iterable[tuple[Node, ...]]) -> Iterator[Node]:
    seen: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node not in seen:
            seen.add(node)
            for i in node.inputs:
                yield from visit(i)
            yield node

    for group in ends:
        for end in group:
            yield from visit(end)


def _check_names(nodes: tuple[Node, ...]) -> None:
    seen: dict[str, Node] = {}
    for node in nodes:
        other = seen.setdefault(node.name, node)
        if other is node:
            continue
        if {node.operation, other.operation} <= {"sink", "dead_letters"}:
            hint = "merge the streams before the sink"
        elif node.operation == "source" and other.operation == "source":
            hint = "build both pipelines from one source(…)"
        else:
            hint = "give one of them name=…"
        raise GraphError(f"two steps are called {node.name}: {hint}")


def _check_states(nodes: tuple[Node, ...]) -> None:
    seen: dict[str, Node] = {}
    for node in nodes:
        if node.operation not in STATEFUL:
            continue
        other = seen.setdefault(node.state.name, node)
        shared = node is not other
        if shared and any(n.function and n.function.arrays for n in (node, other)):
            raise GraphError(
                f"steps {other.name} and {node.name} share state {node.state.name}: a state "
                "computation over arrays has its state for itself"
            )
        if other.state.cls is not node.state.cls:
            raise GraphError(
                f"steps {other.name} and {node.name} both name state {node.state.name} but keep "
                f"objects of {other.state.cls.__name__} and {node.state.cls.__name__}"
            )


def _check_picklable(nodes: tuple[Node, ...]) -> None:
    from pyspark import cloudpickle

    for node in nodes:
        try:
            cloudpickle.dumps(node.function)  # type: ignore[no-untyped-call]
        except Exception as e:  # pickling runs user code, which may raise anything
            raise GraphError(
                f"step {node.name}: its function cannot be sent to a worker "
                f"({type(e).__name__}: {e}); open files, sockets and locks inside it instead"
            ) from e


def _upstream(node: Node) -> Iterator[Node]:
    for i in node.inputs:
        yield i
        yield from _upstream(i)


def _levels(nodes: tuple[Node, ...]) -> dict[Node, int]:
    sharing: dict[str, list[Node]] = {}
    for node in nodes:
        if node.operation in STATEFUL:
            for before in _upstream(node):
                if before.operation in STATEFUL and before.state.name == node.state.name:
                    raise GraphError(
                        f"step {node.name} comes after step {before.name} and shares its state "
                        f"{node.state.name}: a cycle through the state"
                    )
            sharing.setdefault(node.state.name, []).append(node)
    level = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        before_round = dict(level)
        for node in nodes:
            own = max((level[i] for i in node.inputs), default=0) + (node.operation in STATEFUL)
            level[node] = max(level[node], own)
        for group in sharing.values():
            highest = max(level[n] for n in group)
            level.update(dict.fromkeys(group, highest))
        if level == before_round:
            return level
    names = ", ".join(n.name for n in nodes if n.operation in STATEFUL)
    raise GraphError(f"states are shared in a cycle among the steps {names}")


def reached_by_state(node: Node) -> bool:
    """Whether a step keeps state or comes after one that does. Messages without keys come out of
    it in no order, because each key's messages take their own way."""
    return any(n.operation in STATEFUL for n in (node, *_upstream(node)))


def sources_of(node: Node) -> frozenset[Node]:
    """The sources whose messages reach a step."""
    return frozenset(n for n in (node, *_upstream(node)) if n.operation == "source")


def overlapping(merge: Node) -> bool:
    """Whether two inputs of a merge come from one source, so that ids must be told apart."""
    origins = [sources_of(i) for i in merge.inputs]
    return len(frozenset().union(*origins)) < sum(len(o) for o in origins)


def _depths(nodes: tuple[Node, ...]) -> dict[Node, int]:
    depth: dict[Node, int] = {}
    for node in nodes:
        longer = node.operation in ("computation_multi", "state_computation_multi") or (
            node.operation == "merge" and overlapping(node)
        )
        depth[node] = max((depth[i] for i in node.inputs), default=0) + longer
    for node in nodes:
        if node.operation == "dead_letters":
            depth[node] = max(depth.values()) + 1
    return depth
