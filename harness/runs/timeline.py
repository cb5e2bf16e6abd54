"""Rate, latency and recovery of a run over time, with its faults as bands: for reports to draw.

Nothing is judged by it: order and causes come from steps, never from clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bettong.harness.faults.step_ids import FAULT, NODE_START, StepId
from bettong.lineage.trace import MessageRange, TraceEvent

BINS = 40
_ARRIVED = ("gateway.append/STREAM/N", "batch=N/source.plan")
_CARRIED = "batch=N/state.manifest"
_SHOWN = ("receiver.commit/batch=N", "batch=N/sink.commit")


class Shown(NamedTuple):
    """A batch became visible.

    Attributes:
        at: when, in seconds.
        messages: how many.
        waited: seconds since the oldest of them came; None when that is not in the trace.
    """

    at: float
    messages: int
    waited: float | None


def timeline(events: Sequence[TraceEvent], times: Sequence[float]) -> dict[str, Any]:
    """``timeline`` and ``bands`` as ``Result.details`` have them; empty when no batch was shown.

    Args:
        events: the trace of one run.
        times: when each event came, in seconds.

    Messages count when a sink first shows their batch; latency is the time since the gateway had
    the oldest of them, or since they were planned where there is no gateway.
    """
    shown = list(_shown(events, times))
    if not shown:
        return {}
    start = times[0]
    width = max(times[-1] - start, 1e-3) / BINS
    bins: list[list[Shown]] = [[] for _ in range(BINS)]
    for batch in shown:
        bins[min(BINS - 1, int((batch.at - start) / width))].append(batch)
    points = [
        {
            "t": round((place + 0.5) * width, 3),
            "rate": round(sum(b.messages for b in found) / width, 1),
            "latency_ms": _worst(found),
        }
        for place, found in enumerate(bins)
    ]
    return {"timeline": points, "bands": list(_bands(events, [at - start for at in times]))}


def _worst(batches: Sequence[Shown]) -> float | None:
    waited = [b.waited for b in batches if b.waited is not None]
    return round(max(waited) * 1000, 1) if waited else None


def _shown(events: Sequence[TraceEvent], times: Sequence[float]) -> Iterator[Shown]:
    came: list[tuple[MessageRange, float]] = []
    carried: dict[int | None, tuple[MessageRange, ...]] = {}
    reported = set[int | None]()
    for event, at in zip(events, times, strict=True):
        if event.phase != "after":
            continue
        id = StepId.parse(event.step)
        batch = id.batch
        if id.shape in _ARRIVED:
            came += [(r, at) for r in event.carries]
        elif id.shape == _CARRIED:
            carried[batch] = event.carries
        elif id.shape in _SHOWN and batch in carried and batch not in reported:
            reported.add(batch)
            ranges = carried[batch]
            since = [t for r, t in came if any(_overlap(r, other) for other in ranges)]
            count = sum(r.stop - r.start for r in ranges)
            yield Shown(at, count, at - min(since) if since else None)


def _overlap(a: MessageRange, b: MessageRange) -> bool:
    return a.stream == b.stream and a.start < b.stop and b.start < a.stop


def _bands(events: Sequence[TraceEvent], times: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Each fault from when it was in force until it was over: healed, or its node started again."""
    for place, (event, at) in enumerate(zip(events, times, strict=True)):
        if not event.step.startswith(FAULT):
            continue
        over = (event.step, f"{NODE_START}{event.node}")
        lasting = event.phase == "before" or event.step.startswith(f"{FAULT}crash(")
        later = zip(events[place + 1 :], times[place + 1 :], strict=True)
        ended = (t for e, t in later if e.phase == "after" and e.step in over)
        until = next(ended, times[-1]) if lasting else at
        if event.phase == "before" or not _begun(events[:place], event.step):
            label = event.step.removeprefix(FAULT)
            yield {"from": round(at, 3), "to": round(until, 3), "label": label}


def _begun(events: Sequence[TraceEvent], step: str) -> bool:
    return any(e.step == step and e.phase == "before" for e in events)
