"""Rate and latency over time, with the faults as bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from bettong.lineage.results import Result

WIDTH, HEIGHT, LEFT, BOTTOM = 1000, 220, 64, 26
MAX_POINTS = 1000


def timeline_section(result: Result) -> Iterator[str]:
    """``details["timeline"]``: points ``{t, rate, latency_ms}`` with ``t`` in seconds, and
    ``details["bands"]``: ``{from, to, label}``."""
    points = result.details.get("timeline")
    if not isinstance(points, list) or len(points) < 2:
        return
    points = points[:: max(1, len(points) // MAX_POINTS)]
    bands = result.details.get("bands") or []
    start, end = float(points[0]["t"]), float(points[-1]["t"])
    span = (end - start) or 1.0

    def x(t: float) -> float:
        return LEFT + (WIDTH - LEFT) * min(1.0, max(0.0, (t - start) / span))

    title = f"Rate and latency over {span:.1f} seconds with {len(bands)} faults"
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{title}">'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    yield f'<svg class="plot" role="img" {size}>'
    yield f"<title>{title}</title>"
    for band in bands:
        x1, x2 = x(float(band["from"])), x(float(band["to"]))
        label = escape(str(band["label"]))
        yield f'<g><title>{label}</title><rect class="band" x="{x1:.1f}" y="0" '
        yield f'width="{max(2.0, x2 - x1):.1f}" height="{HEIGHT - BOTTOM}"/></g>'
    yield from _curve(points, "rate", "rate", x, "messages/s", 14)
    yield from _curve(points, "latency_ms", "latency", x, "ms", 30)
    yield f'<text x="{LEFT}" y="{HEIGHT - 8}">0 s</text>'
    yield f'<text x="{WIDTH - 60}" y="{HEIGHT - 8}">{span:.1f} s</text></svg></div>'
    names = "".join(
        f"<li>{float(b['from']) - start:.1f} s to {float(b['to']) - start:.1f} s: "
        f"{escape(str(b['label']))}{_recovery(points, b)}</li>"
        for b in bands[:50]
    )
    if names:
        yield f"<p>Faults (bands):</p><ul class=plain>{names}</ul>"


def _recovery(points: Sequence[Mapping[str, Any]], band: Mapping[str, Any]) -> str:
    """How long after a fault began messages were shown again."""
    after = (float(p["t"]) - float(band["from"]) for p in points if p.get("rate"))
    waited = min((t for t in after if t >= 0), default=None)
    if waited is None:
        return "; no message was shown after it"
    return f"; messages were shown again {waited:.1f} s after it began"


def _curve(
    points: Sequence[Mapping[str, Any]], field: str, css: str, x: Any, unit: str, y: int
) -> Iterator[str]:
    values = [(float(p["t"]), float(p[field])) for p in points if p.get(field) is not None]
    if not values:
        return
    top = max(v for _, v in values) or 1.0
    line = " ".join(f"{x(t):.1f},{(HEIGHT - BOTTOM) * (1 - v / top * 0.9):.1f}" for t, v in values)
    yield f'<polyline class="{css}" points="{line}"/>'
    yield f'<text x="2" y="{y}">{css} ≤ {top:,.0f} {unit}</text>'
