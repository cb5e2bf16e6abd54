"""Lineage in other people's formats: Graphviz DOT, OpenLineage run events."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from bettong.lineage.faults import FaultSet
from bettong.lineage.graph import FACT, FIRING, LEAF, Lineage

OPENLINEAGE = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
TAGS = "https://openlineage.io/spec/facets/1-0-0/TagsRunFacet.json"
PRODUCER = "urn:bettong"


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
