from __future__ import annotations

from bettong.harness.runs.timeline import BINS, timeline
from bettong.lineage.trace import MessageRange, TraceEvent


def event(step: str, phase: str = "after", node: str = "driver", *carries: int) -> TraceEvent:
    ranges = (MessageRange("lines", *carries),) if carries else ()
    return TraceEvent(step, phase, node, carries=ranges)  # type: ignore[arg-type]


CRASH = "fault/crash(driver, before batch=1/sink.commit)"
TRACE = [
    (0.0, event("gateway.append/lines/7", "after", "gateway", 0, 8)),
    (0.5, event("gateway.append/lines/11", "after", "gateway", 8, 12)),
    (1.0, event("batch=0/state.manifest", "after", "driver", 0, 8)),
    (2.0, event("receiver.commit/batch=0", "after", "receiver")),
    (2.1, event("batch=0/sink.commit", "after", "driver", 0, 8)),
    (3.0, event("batch=1/state.manifest", "after", "driver", 8, 12)),
    (3.1, event(CRASH, "after", "driver")),
    (7.0, event("node.start/driver")),
    (7.2, event("fault/delay(driver->receiver, batch=1/sink.commit)", "before")),
    (7.4, event("fault/delay(driver->receiver, batch=1/sink.commit)", "after")),
    (8.0, event("batch=1/sink.commit", "after", "driver", 8, 12)),
    (8.0, event("receiver.commit/batch=1", "after", "receiver")),
]


def test_rate_latency_and_recovery() -> None:
    reported = timeline([e for _, e in TRACE], [t + 100 for t, _ in TRACE])
    points = reported["timeline"]
    assert len(points) == BINS
    width = 8.0 / BINS
    rates = {p["t"]: p["rate"] for p in points if p["rate"]}
    assert list(rates.values()) == [round(8 / width, 1), round(4 / width, 1)]
    assert sum(p["rate"] for p in points) * width == 12
    waits = [p["latency_ms"] for p in points if p["latency_ms"] is not None]
    assert waits == [2000.0, 7500.0]
    assert reported["bands"] == [
        {"from": 3.1, "to": 7.0, "label": "crash(driver, before batch=1/sink.commit)"},
        {"from": 7.2, "to": 7.4, "label": "delay(driver->receiver, batch=1/sink.commit)"},
    ]


def test_a_run_that_shows_nothing_has_no_timeline() -> None:
    assert timeline([e for _, e in TRACE[:3]], [t for t, _ in TRACE[:3]]) == {}
    assert timeline([], []) == {}
