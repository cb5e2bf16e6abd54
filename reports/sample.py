"""What fits on a page: a sample of many anomalies or runs, with the true numbers beside it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from bettong.lineage.results import Anomaly, Result


def anomaly_counts(result: Result) -> dict[str, int]:
    """How many anomalies of each kind there are, also when the result holds a sample."""
    reported: Mapping[str, Any] = result.details.get("anomaly_counts") or {}
    found: Counter[str] = Counter(a.kind for a in result.anomalies)
    return {kind: int(reported.get(kind, found[kind])) for kind in sorted({*reported, *found})}


def sample_anomalies(anomalies: Sequence[Anomaly], limit: int) -> list[Anomaly]:
    """At most ``limit`` anomalies, the same share of each kind, in the order given."""
    if len(anomalies) <= limit:
        return list(anomalies)
    by_kind: dict[str, list[int]] = defaultdict(list)
    for place, anomaly in enumerate(anomalies):
        by_kind[anomaly.kind].append(place)
    turns: Iterator[int | None] = chain.from_iterable(zip_longest(*by_kind.values()))
    chosen = [place for place in turns if place is not None][:limit]
    return [anomalies[place] for place in sorted(chosen)]


def short_json(value: Any, limit: int = 300) -> str:
    """A value as a person reads it in a table cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
