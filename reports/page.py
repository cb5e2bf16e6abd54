"""The HTML report: one file that needs nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from bettong.lineage.results import Result
from bettong.reports.matrix import matrix_table
from bettong.reports.page_counterexample import counterexample_of
from bettong.reports.page_tables import anomaly_kinds, anomaly_table, run_table
from bettong.reports.plots import timeline_section
from bettong.reports.templating import render
from bettong.reports.words import LEVEL_MEANING, VERDICT_SIGN, VERDICT_WORD, level_line, shard_of

SHOWN_ANOMALIES = 50
SHOWN_COUNTEREXAMPLES = 20
RENDERED_DETAILS = frozenset(
    ["anomaly_counts", "bands", "good_trace", "lineage", "matrix", "pictures", "timeline"]
)
_DETAILS = 20_000


def html_report(result: Result, directory: Path) -> str:
    """The page of one result; traces are read from the directory that the result is in."""
    kinds = anomaly_kinds(result)
    matrix = result.details.get("matrix")
    drawn = min(len(result.counterexamples), SHOWN_COUNTEREXAMPLES)
    known = result.verdict != "unknown" and result.kind != "protocol"
    content = {
        "counterexamples": [counterexample_of(result, n, directory) for n in range(drawn)],
        "anomaly_kinds": kinds,
        "anomalies": anomaly_table(
            result.anomalies, sum(count for *_, count in kinds), SHOWN_ANOMALIES
        ),
        "matrix": matrix_table(matrix) if isinstance(matrix, dict) and matrix.get("rows") else None,
        "timeline": Markup("\n".join(timeline_section(result))),  # noqa: S704 - escaped there
        "coverage": _coverage(result),
        "runs": run_table(result) if result.runs else None,
        "details": _details(result),
    }
    return render(
        "result.html",
        title=f"{VERDICT_SIGN[result.verdict]} {result.scenario}: {result.verdict}",
        result=result,
        sign=VERDICT_SIGN[result.verdict],
        verdict=VERDICT_WORD[result.verdict],
        level=level_line(result),
        meaning=LEVEL_MEANING[result.guarantee] if known else "",
        when=_when(result.started_at),
        seconds=f"{result.duration_s:,.1f}",
        shard=shard_of(result),
        sections=list(_sections(content)),
        **content,
    )


def _sections(content: dict[str, object]) -> Iterator[tuple[str, str]]:
    """(id, title) of each section that has something to say."""
    for id, title, source in (
        ("counterexamples", "Counterexamples", "counterexamples"),
        ("anomalies", "Anomalies", "anomaly_kinds"),
        ("matrix", "Matrix", "matrix"),
        ("timeline", "Over time", "timeline"),
        ("coverage", "Coverage", "coverage"),
        ("run-table", "Runs", "runs"),
    ):
        if content[source]:
            yield id, title
    yield "basis", "What this rests on"


def _when(started_at: str) -> str:
    """The time as people write it; as it is when it is no time."""
    try:
        return f"{datetime.fromisoformat(started_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return started_at


def _coverage(result: Result) -> list[tuple[str, int]]:
    c = result.coverage
    if not c.executions and not result.runs:
        return []
    space = "" if c.fault_space is None else f" of {c.fault_space:,} schedules within the bounds"
    rows = [
        ("Runs" + space, c.executions or len(result.runs)),
        ("Goals explained", c.goals),
        ("Supports seen", c.supports),
        ("Fault sets put up", c.hypotheses),
        ("Injected", c.injected),
        ("Not injected", c.not_injected),
        ("Vacuous", c.vacuous),
        ("Pruned as equivalent", c.pruned),
        ("Violations", c.violated),
    ]
    if c.to_first is not None:
        rows.append(("Runs to the first violation", c.to_first))
    return rows


def _details(result: Result) -> str:
    rest = {k: v for k, v in result.details.items() if k not in RENDERED_DETAILS}
    if not rest:
        return ""
    text = json.dumps(rest, indent=1, ensure_ascii=False, default=str)
    return text if len(text) <= _DETAILS else text[:_DETAILS] + "\n… (the rest is in result.json)"
