"""Why a step of a run happened, and what depended on it, read from the run's trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from bettong.engine.ids import MessageIdError, parse_id
from bettong.harness.search.occurrences import Occurrence, read_occurrences
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.results import Result
from bettong.lineage.trace import TraceEvent, read_trace


@dataclass(frozen=True, slots=True)
class Message:
    """An input message; an output names the one that it was made from."""

    stream: str
    number: int

    @classmethod
    def of(cls, text: str) -> Message | None:
        """The input of ``lines/17`` or of ``lines/17.2``; None when it is no message id."""
        try:
            found = parse_id(text)
        except MessageIdError:
            return None
        return cls(found.stream, found.number)

    def moved_by(self, occurrence: Occurrence) -> bool:
        """Whether the step moved this message."""
        return any(
            r.stream == self.stream and r.start <= self.number < r.stop for r in occurrence.carries
        )


@dataclass(frozen=True, slots=True)
class Why:
    """An answer: steps with the edges between them, from cause to effect.

    Attributes:
        asked: the occurrence that was asked about.
        graph: its nodes are names of occurrences, with the attribute ``occurrence``.
        unread: steps whose causes the trace does not show.
    """

    asked: Occurrence
    graph: nx.DiGraph
    unread: tuple[str, ...]

    def in_order(self) -> Iterator[tuple[Occurrence, list[str]]]:
        """The occurrences in the order of the run, each with the names of its direct causes."""
        nodes = self.graph.nodes
        for name in sorted(nodes, key=lambda n: int(nodes[n]["occurrence"].begun)):
            yield nodes[name]["occurrence"], sorted(self.graph.predecessors(name))


def result_trace(directory: Path) -> list[TraceEvent]:
    """The trace of the good run that a result's folder keeps; raises UsageError."""
    result = Result.read(directory)
    name = result.details.get("good_trace")
    if not isinstance(name, str):
        raise UsageError(
            f"{directory} keeps no trace of a good run: make the result with bettong run, "
            "or name a trace with --trace"
        )
    return list(read_trace(directory / name))


def why(events: Iterable[TraceEvent], asked: str, *, dependents: bool = False) -> Why:
    """Why a message's outputs became visible, or a step happened; or what depended on it.

    Args:
        asked: a message or output id such as ``lines/17.2``, or a step id.
        dependents: what it caused, in place of what caused it.

    Raises UsageError when the trace has no such message or step.
    """
    reading = read_occurrences(events)
    by_step: dict[str, Occurrence] = {}
    for occurrence in reading.occurrences:
        if occurrence.ended is not None:
            by_step.setdefault(occurrence.step, occurrence)
            by_step[occurrence.name] = occurrence
    message = Message.of(asked) if asked not in by_step else None
    found = _visible(reading.occurrences, message) if message else by_step.get(asked)
    if found is None:
        if message:
            raise UsageError(f"no batch of this run made {asked} visible")
        one_of(asked, sorted(by_step), "step")
        raise UsageError(f"{asked} was not done in this run")
    keep = _about(message) if message else lambda _: True
    graph = _graph(reading.occurrences, keep)
    graph.add_node(found.name, occurrence=found)
    reach = nx.descendants if dependents else nx.ancestors
    chosen = reach(graph, found.name) | {found.name}
    return Why(found, graph.subgraph(chosen).copy(), tuple(reading.unread))


def _visible(occurrences: Sequence[Occurrence], message: Message) -> Occurrence | None:
    """The step that made the message's batch visible: the sink's, or else Spark's own note."""
    batch = next(
        (batch for o in occurrences if (batch := o.id.batch) is not None and message.moved_by(o)),
        None,
    )
    for step in (f"receiver.commit/batch={batch}", f"batch={batch}/commits"):
        for o in occurrences:
            if o.step == step and o.ended is not None:
                return o
    return None


def _about(message: Message) -> Callable[[Occurrence], bool]:
    """Leave out steps that moved only other messages."""
    return lambda o: not o.carries or message.moved_by(o)


def _graph(occurrences: Sequence[Occurrence], keep: Callable[[Occurrence], bool]) -> nx.DiGraph:
    """Direct causes. Of a request and its answer, each of which waits for the other, the edge
    from the request to the answer is kept."""
    graph: nx.DiGraph = nx.DiGraph()
    for o in occurrences:
        if o.ended is not None and keep(o):
            graph.add_node(o.name, occurrence=o)
    for o in occurrences:
        for cause in o.causes:
            if o.name in graph and cause.name in graph:
                graph.add_edge(cause.name, o.name)
    for o in occurrences:
        for answer in o.answers:
            if o.name in graph and answer.name in graph and o not in answer.causes:
                graph.add_edge(answer.name, o.name)
    return graph
