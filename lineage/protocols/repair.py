"""What happened in a violating run, and what would have helped, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bettong.lineage.faults import CRASH, DELAY, DUPLICATE, Fault
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.queries import frontier
from bettong.lineage.search.executor import Execution

MODELS = {
    "send-stop": "and sends nothing any more",
    "full-stop": "and does nothing any more",
    "restart": "and comes back with its durable facts",
}


def _phrase(spec: FailureSpec, fault: Fault, messages: list[dict[str, Any]]) -> str:
    if fault.kind == CRASH:
        return f"{fault.place} crashes in round {fault.time} {MODELS[spec.crash_model]}"
    sender, receiver = fault.place.split("->")
    names = sorted(
        {
            m["name"]
            for m in messages
            if (m["sender"], m["receiver"], m["sent"]) == (sender, receiver, fault.time)
        }
    )
    what = " and ".join(names) or "nothing"
    verb = {DUPLICATE: "arrives twice", DELAY: "arrives one round late"}.get(fault.kind, "is lost")
    return f"{what} that {sender} sends {receiver} in round {fault.time} {verb}"


def words(spec: FailureSpec, found: Execution) -> str:
    """What the faults of a violating run do, and which goal they break."""
    faults = sorted((spec.faults[id] for id in found.schedule), key=lambda f: (f.time, f.id))
    reported = [_phrase(spec, fault, found.details["messages"]) for fault in faults]
    broken = "; ".join(f"{a.expected}, but {a.seen}" for a in found.anomalies)
    story = ", then ".join(reported) or "without any fault"
    return f"{story[0].upper()}{story[1:]}. In round {spec.eot}: {broken}."


def advice(spec: FailureSpec, baseline: Execution, found: Execution) -> str:
    """What the protocol lacks: a message that is not sent again, a fact that nothing else
    carries, a decision that only one node can take."""
    parts = []
    faults = sorted((spec.faults[id] for id in found.schedule), key=lambda f: (f.time, f.id))
    messages = found.details["messages"]
    for fault in faults:
        if fault.kind == CRASH:
            parts.append(_instead_of(fault, messages, baseline.details["messages"]))
        elif "->" in fault.place:
            parts.append(_again(fault, messages))
    for anomaly in found.anomalies[:1]:
        goal = f"goal({anomaly.key})"
        if goal in baseline.lineage.graph:
            lost = [f for f in frontier(baseline.lineage, goal, found.schedule) if "] " in f]
            heads = [f.split("] ", 1)[1] for f in lost if not f.startswith(("holds", "some"))]
            carried = next((h for h in heads if "@" in h and not h.startswith("!")), None)
            if carried:
                parts.append(f"nothing else carries {carried.rsplit('@', 1)[0]}")
    return "; ".join(dict.fromkeys(p for p in parts if p))


def _again(fault: Fault, messages: list[dict[str, Any]]) -> str:
    sender, receiver = fault.place.split("->")
    mine = [m for m in messages if (m["sender"], m["receiver"]) == (sender, receiver)]
    lost = sorted({m["name"] for m in mine if m["sent"] == fault.time})
    for name in lost:
        later = [m for m in mine if m["name"] == name and m["sent"] > fault.time]
        if not any(m["arrives"] for m in later):
            when = f"after round {fault.time}" if not later else "that arrives"
            return f"no retry of {name} {sender}→{receiver} {when}"
    return ""


def _instead_of(
    fault: Fault, messages: list[dict[str, Any]], clean: list[Mapping[str, Any]]
) -> str:
    node = fault.place
    silent = sorted({m["name"] for m in clean if m["sender"] == node and m["sent"] >= fault.time})
    others = {m["name"] for m in messages if m["sender"] != node and m["sent"] >= fault.time}
    alone = [name for name in silent if name not in others]
    if not alone:
        return ""
    return f"after {node} has crashed, nobody else sends {' or '.join(alone)}"
