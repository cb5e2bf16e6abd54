"""The application graph: what happens to messages, with no word about where.

Streams are built left to right and never change: each method gives a new stream. What they build
is checked as a whole by :func:`application`, which refuses a graph that cannot run and names the
step at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from bettong.engine.batching import Batching
from bettong.engine.functions import Decoder, Function, Kind, State, predicate
from bettong.engine.graph_checks import check
from bettong.engine.ids import STREAM_NAME
from bettong.engine.levels import depths, levels
from bettong.engine.node import STATEFUL, GraphError, Node, OnError, Operation

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

    def every_key(self, *, name: str | None = None) -> Stream:
        """Messages for every key: a state step that they come to, on their own or merged with
        messages that have keys, takes each of them to all entities that there are, in the order
        of their keys' hashes. A key that has no entity is not met. Each reads the whole state."""
        return Stream(Node("every_key", name or f"every_key({self.node.name})", (self.node,)))

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
        batching: when its micro-batches close, unless a run says otherwise.
    """

    name: str
    nodes: tuple[Node, ...]
    level: dict[Node, int] = field(repr=False)
    depth: dict[Node, int] = field(repr=False)
    on_error: OnError = "fail"
    batching: Batching = field(default_factory=Batching)

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


def application(
    name: str,
    *pipelines: Pipeline | Stream,
    on_error: Literal["fail", "skip"] | Sink = "fail",
    batching: Batching | None = None,
) -> Application:
    """Check the pipelines as a whole and make an application of them.

    Args:
        name: told to sinks.
        pipelines: each with an end.
        on_error: what is done when a user's function fails on a message. ``fail`` ends the query
            before anything of the batch can be seen; ``skip`` counts the message and goes on
            without it; a sink gets a :class:`DeadLetter` for it. The state is then as if the
            message had not come to the step that failed.
        batching: when micro-batches close, unless a run says otherwise.

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
    check(nodes)
    return Application(name, nodes, levels(nodes), depths(nodes), policy, batching or Batching())


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
