"""Traces as OpenTelemetry spans: OTLP/JSON files that collectors and viewers read.

A step is a span, its node the service, its causes the parent and links. Steps have an order but no
clock: the n-th event of the trace is put at n milliseconds after the start that is given.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bettong.lineage.trace import TraceEvent
from bettong.reports.steps import FAULT, StepSpan, taken_steps

MILLISECOND = 1_000_000
CLIENT, INTERNAL = 3, 1
OK, ERROR = 1, 2


def otlp_trace(events: Sequence[TraceEvent], name: str, start_ns: int = 0) -> dict[str, Any]:
    """One ``TracesData`` object of OTLP's JSON encoding.

    Args:
        events: the trace, in the order recorded.
        name: of the run; equal names give equal trace and span ids.
        start_ns: Unix time of the first event, nanoseconds.
    """
    taken = taken_steps(events)
    latest: dict[str, str] = {}
    spans: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for t in sorted(taken, key=lambda t: t.began):
        own = _id(f"{name}\0{t.step}\0{t.occurrence}", 8)
        causes = [latest[c] for c in t.event.causes if c in latest and latest[c] != own]
        latest[t.step] = own
        spans[t.node].append(_span(t, own, causes, name, start_ns, len(events)))
    for place, event in enumerate(events):
        if event.step.startswith(FAULT):
            now = _time(start_ns, place)
            begun = [s for s in spans[event.node] if int(s["startTimeUnixNano"]) <= int(now)]
            for span in begun[-1:]:
                span.setdefault("events", []).append({"timeUnixNano": now, "name": event.step})
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_text("service.name", f"bettong.{node}")]},
                "scopeSpans": [{"scope": {"name": "bettong"}, "spans": found}],
            }
            for node, found in spans.items()
            if found
        ]
    }


def _span(
    t: StepSpan, own: str, causes: list[str], name: str, start_ns: int, size: int
) -> dict[str, Any]:
    trace = _id(name, 16)
    span: dict[str, Any] = {
        "traceId": trace,
        "spanId": own,
        "name": t.step,
        "kind": INTERNAL if t.event.link is None else CLIENT,
        "startTimeUnixNano": _time(start_ns, t.began),
        "endTimeUnixNano": _time(start_ns, size if t.ended is None else t.ended),
        "attributes": [
            _text("bettong.node", t.node),
            {"key": "bettong.incarnation", "value": {"intValue": str(t.incarnation)}},
            {"key": "bettong.occurrence", "value": {"intValue": str(t.occurrence)}},
        ],
        "status": {"code": OK},
    }
    if t.event.link is not None:
        span["attributes"].append(_text("bettong.link", t.event.link))
    for moved in t.event.carries:
        text = f"{moved.stream}/{moved.start}..{moved.stop}"
        span["attributes"].append(_text("bettong.messages", text))
    if causes:
        span["parentSpanId"] = causes[0]
        span["links"] = [{"traceId": trace, "spanId": cause} for cause in causes[1:]]
    if t.failed or t.ended is None:
        message = "failed" if t.failed else "its process died"
        span["status"] = {"code": ERROR, "message": message}
    return span


def _id(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _time(start_ns: int, place: int) -> str:
    return str(start_ns + place * MILLISECOND)


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}
