"""How far a step is from the sources: in moves between workers, and in numbers in ids."""

from __future__ import annotations

from bettong.engine.ids import VISIT_WIDTH
from bettong.engine.node import STATEFUL, GraphError, Node, overlapping, upstream


def levels(nodes: tuple[Node, ...]) -> dict[Node, int]:
    """For each step the number of state steps on the longest way to it, itself counted; steps
    that share a state have one level. Raises GraphError when that cannot be."""
    sharing: dict[str, list[Node]] = {}
    for node in nodes:
        if node.operation in STATEFUL:
            for before in upstream(node):
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


def depths(nodes: tuple[Node, ...]) -> dict[Node, int]:
    """For each step the length of the longest path in the ids of its outputs."""
    depth: dict[Node, int] = {}
    for node in nodes:
        longer = node.operation in ("computation_multi", "state_computation_multi") or (
            node.operation == "merge" and overlapping(node)
        )
        longest = max((depth[i] for i in node.inputs), default=0)
        depth[node] = longest + longer + VISIT_WIDTH * node.visits
    for node in nodes:
        if node.operation == "dead_letters":
            depth[node] = max(depth.values()) + 1
    return depth
