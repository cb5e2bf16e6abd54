"""The steps of an application, and what can be said of them by looking upstream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bettong.engine.functions import Function, State, StateFunction
from bettong.lineage.errors import UsageError

Operation = Literal[
    "source",
    "computation",
    "computation_multi",
    "filter",
    "key_by",
    "every_key",
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
        return self.operation in ("key_by", "every_key") or any(i.keyed for i in self.inputs)

    @property
    def for_every_key(self) -> bool:
        """Whether messages that leave it may be for every key."""
        if self.operation in STATEFUL or self.operation == "key_by" or not self.keyed:
            return False
        return self.operation == "every_key" or any(i.for_every_key for i in self.inputs)

    @property
    def visits(self) -> bool:
        """Whether it keeps state and may get messages for every key."""
        return self.operation in STATEFUL and any(i.for_every_key for i in self.inputs)

    @property
    def state(self) -> State:
        """The state of a stateful step."""
        assert isinstance(self.function, StateFunction)
        return self.function.state


def upstream(node: Node) -> Iterator[Node]:
    """Every step whose messages reach a step, each once, without the step itself."""
    seen: set[Node] = set()
    waiting = list(node.inputs)
    while waiting:
        before = waiting.pop()
        if before not in seen:
            seen.add(before)
            waiting += before.inputs
            yield before


def reached_by_state(node: Node) -> bool:
    """Whether a step keeps state or comes after one that does. Messages without keys come out of
    it in no order, because each key's messages take their own way."""
    return any(n.operation in STATEFUL for n in (node, *upstream(node)))


def sources_of(node: Node) -> frozenset[Node]:
    """The sources whose messages reach a step."""
    return frozenset(n for n in (node, *upstream(node)) if n.operation == "source")


def overlapping(merge: Node) -> bool:
    """Whether two inputs of a merge come from one source, so that ids must be distinguished."""
    origins = [sources_of(i) for i in merge.inputs]
    return len(frozenset().union(*origins)) < sum(len(o) for o in origins)
