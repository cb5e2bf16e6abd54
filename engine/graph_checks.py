"""What is refused when an application is built."""

from __future__ import annotations

from bettong.engine.node import STATEFUL, GraphError, Node


def check(nodes: tuple[Node, ...]) -> None:
    """Refuse steps that cannot run together; raises GraphError, which names the step."""
    _check_names(nodes)
    _check_states(nodes)
    _check_every_key(nodes)
    _check_picklable(nodes)


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
        if other.state.forget is not node.state.forget:
            raise GraphError(
                f"steps {other.name} and {node.name} share state {node.state.name} but do not "
                "forget the same entities: make it with one state_entity(…) for both"
            )


def _check_every_key(nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        if node.operation == "sink" and node.for_every_key:
            raise GraphError(
                f"messages for every key come to sink {node.name}: they have a key only after a "
                "state step, put one before the sink"
            )
        if node.visits and node.function and node.function.arrays:
            raise GraphError(
                f"step {node.name} is over arrays and cannot take messages for every key"
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
