"""Lineage in other people's formats: JSON, Graphviz DOT, OpenLineage run events."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from bettong.lineage.errors import UsageError
from bettong.lineage.faults import Fault, FaultSet
from bettong.lineage.graph import FACT, FIRING, LEAF, Lineage

OPENLINEAGE = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
TAGS = "https://openlineage.io/spec/facets/1-0-0/TagsRunFacet.json"
PRODUCER = "urn:bettong"


def to_json(lineage: Lineage) -> dict[str, Any]:
    """The whole graph as JSON values; :func:`from_json` reads it back."""
    return {
        "nodes": [
            {k: v for k, v in {"id": id, **attributes}.items() if v not in (False, "")}
            for id, attributes in lineage.graph.nodes(data=True)
        ],
        "edges": [list(edge) for edge in lineage.graph.edges()],
        "goals": dict(lineage.goals),
        "faults": [asdict(f) for f in lineage.faults.values()],
    }


def from_json(value: Mapping[str, Any]) -> Lineage:
    """The lineage of :func:`to_json`'s value; raises UsageError when it is not one."""
    found = Lineage()
    missing: dict[str, dict[str, Any]] = {
        FACT: {"absent": False, "further": False},
        FIRING: {},
        LEAF: {"lost": False, "faults": ()},
    }
    try:
        found.faults = {f["id"]: Fault(**f) for f in value["faults"]}
        for node in value["nodes"]:
            id, kind = str(node["id"]), node["kind"]
            attributes = {**missing[kind], **{k: v for k, v in node.items() if k != "id"}}
            if kind == LEAF:
                attributes["faults"] = tuple(str(f) for f in attributes["faults"])
            found.graph.add_node(id, **attributes)
        for cause, effect in value["edges"]:
            if cause not in found.graph or effect not in found.graph:
                raise ValueError(f"the edge {cause} -> {effect} has no such node")
            found.graph.add_edge(cause, effect)
        found.goals = dict(value["goals"])
    except (KeyError, TypeError, ValueError) as e:
        raise UsageError(f"not a lineage graph: {e}") from e
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def to_dot(lineage: Lineage, nodes: Iterable[str] | None = None) -> str:
    """The graph, or the part of it with these nodes, in Graphviz' language."""
    graph = lineage.graph if nodes is None else lineage.graph.subgraph(nodes)
    lines = ["digraph lineage {", "  rankdir=LR;"]
    for id, attributes in graph.nodes(data=True):
        shape = {FACT: "ellipse", FIRING: "box", LEAF: "note"}[attributes["kind"]]
        style = "dashed" if attributes.get("absent") or attributes.get("lost") else "solid"
        width = 2 if id in lineage.goals else 1
        lines.append(
            f"  {_quoted(id)} [label={_quoted(attributes['label'])}, shape={shape}, "
            f"style={style}, penwidth={width}];"
        )
    lines += [f"  {_quoted(a)} -> {_quoted(b)};" for a, b in graph.edges()]
    return "\n".join([*lines, "}"]) + "\n"


def to_openlineage(
    lineage: Lineage, job: str, run: str, time: str, schedule: FaultSet = frozenset()
) -> list[dict[str, Any]]:
    """OpenLineage run events: one COMPLETE event for each firing.

    A firing is a run of the job ``JOB/RULE``; its premises are the input data sets, what it
    derives is the output. Facts are data sets of the name space ``bettong``. Absences and leaves
    have no counterpart in OpenLineage: absences are left out, leaves become inputs.
    ``time`` is an ISO 8601 instant, ``run`` names the execution.
    """
    tags = [{"key": "fault", "value": f, "source": "USER"} for f in sorted(schedule)]
    facet = {"_producer": PRODUCER, "_schemaURL": TAGS, "tags": tags}
    events: list[dict[str, Any]] = []
    for id, attributes in lineage.graph.nodes(data=True):
        if attributes["kind"] != FIRING:
            continue
        heads = list(lineage.graph.successors(id))
        if any(lineage.graph.nodes[h].get("absent") for h in heads):
            continue
        inputs = [
            p for p in lineage.graph.predecessors(id) if not lineage.graph.nodes[p].get("absent")
        ]
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job}/{run}/{id}"))
        events.append(
            {
                "eventType": "COMPLETE",
                "eventTime": time,
                "producer": PRODUCER,
                "schemaURL": OPENLINEAGE,
                "run": {"runId": identity, "facets": {"tags": facet} if tags else {}},
                "job": {"namespace": "bettong", "name": f"{job}/{attributes['rule']}"},
                "inputs": [{"namespace": "bettong", "name": p} for p in inputs],
                "outputs": [{"namespace": "bettong", "name": h} for h in heads],
            }
        )
    return events
