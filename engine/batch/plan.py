"""An application made ready for batches: its steps by number, and what feeds what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bettong.engine.functions import Function
from bettong.engine.graph import Application
from bettong.engine.ids import StreamNames
from bettong.engine.node import STATEFUL, Node, overlapping


@dataclass(frozen=True)
class Edge:
    """One step feeding another.

    Attributes:
        to: number of the step that is fed.
        place: which of its inputs this is.
    """

    to: int
    place: int


class Plan:
    """Steps by number, in an order in which inputs come first and levels do not fall."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self.nodes: tuple[Node, ...] = tuple(sorted(app.nodes, key=lambda n: app.level[n]))
        self.number: dict[Node, int] = {n: i for i, n in enumerate(self.nodes)}
        self.edges: list[list[Edge]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            for place, before in enumerate(node.inputs):
                self.edges[self.number[before]].append(Edge(i, place))
        self.streams = StreamNames([s.name for s in app.sources])
        self.last_level = max(app.levels, 1)
        self.overlapping: frozenset[int] = frozenset(
            i for i, n in enumerate(self.nodes) if n.operation == "merge" and overlapping(n)
        )

    def call(self, number: int) -> Callable[..., Any]:
        """The user's function of a step."""
        return self.function(number).call

    def function(self, number: int) -> Function:
        """The user's function of a step, with its kind."""
        function = self.nodes[number].function
        assert function is not None
        return function

    def source(self, name: str) -> int:
        """The number of the step that is a source."""
        return next(
            i for i, n in enumerate(self.nodes) if n.operation == "source" and n.name == name
        )

    def level(self, number: int) -> int:
        """The level at which a step runs; sinks run at the last."""
        node = self.nodes[number]
        return self.last_level if node in self.app.sinks else self.app.level[node]

    def visits(self, number: int) -> bool:
        """Whether a step keeps state and may get messages for every key."""
        return self.nodes[number].visits

    def groups(self, level: int) -> dict[str, list[int]]:
        """The stateful steps of a level by the state that they share."""
        found: dict[str, list[int]] = {}
        for i, node in enumerate(self.nodes):
            if node.operation in STATEFUL and self.app.level[node] == level:
                found.setdefault(node.state.name, []).append(i)
        return found
