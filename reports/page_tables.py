"""Tables of the page: anomalies with their records, runs with a filter."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bettong.lineage.results import Anomaly, Result, Run
from bettong.reports.sample import anomaly_counts, sample_anomalies, short_json
from bettong.reports.words import KIND_MEANING, OUTCOME_MEANING, faults_line

RUNS_WITHOUT_SCRIPT = 100
RUN_COLUMNS = ("Outcome", "Faults", "Anomalies", "Seconds", "Note")


@dataclass(frozen=True, slots=True)
class AnomalyTable:
    """Anomalies as rows of cells.

    Attributes:
        shown: at most so many as are asked for, the same share of each kind.
        total: how many there were; ``kept``: how many of them the result has.
        at_once: so many are shown at first.
    """

    shown: Sequence[Sequence[str]]
    total: int
    kept: int
    heads: Sequence[str] = ("Kind", "Messages", "Key", "Expected", "Seen", "Note")
    at_once: int = 5


@dataclass(frozen=True, slots=True)
class RunTable:
    """Runs as rows of cells; those beyond the first come from JSON by script, in pages."""

    total: int
    outcomes: Sequence[tuple[str, int, str]]
    first: Sequence[Sequence[str]]
    data: Markup
    heads: Sequence[str] = RUN_COLUMNS


def anomaly_kinds(result: Result) -> list[tuple[str, str, int]]:
    """(kind, what it means, how many) of each kind that was found."""
    counts = anomaly_counts(result)
    if not any(counts.values()):
        return []
    return [(kind, KIND_MEANING.get(kind, ""), number) for kind, number in counts.items()]


def anomaly_table(anomalies: Sequence[Anomaly], total: int, limit: int) -> AnomalyTable:
    """At most ``limit`` anomalies."""
    shown = [_cells(a) for a in sample_anomalies(anomalies, limit)]
    return AnomalyTable(shown, total, len(anomalies))


def _content(value: Any) -> str:
    """What was expected or seen, in words where it is a count of occurrences."""
    if not isinstance(value, dict) or not isinstance(value.get("times"), int):
        return "" if value is None else short_json(value)
    times = "once" if value["times"] == 1 else f"{value['times']} times"
    places = value.get("places")
    return f"{times}, at places {', '.join(map(str, places))}" if places else times


def _cells(a: Anomaly) -> tuple[str, ...]:
    more = f" and {len(a.messages) - 5:,} more" if len(a.messages) > 5 else ""
    return (
        a.kind,
        ", ".join(a.messages[:5]) + more,
        a.key or "",
        _content(a.expected),
        _content(a.seen),
        a.note or KIND_MEANING.get(a.kind, ""),
    )


def run_row(run: Run) -> tuple[str, str, str, str, str]:
    """The cells of one run, in the order of RUN_COLUMNS."""
    kinds = Counter(a.kind for a in run.anomalies)
    notes = [run.note] if run.note else []
    if run.not_fired:
        notes.append("never fired: " + ", ".join(run.not_fired))
    if run.evidence:
        notes.append("; ".join(f"{k}: {v}" for k, v in sorted(run.evidence.items())))
    return (
        run.outcome,
        faults_line(run.faults),
        ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())),
        f"{run.seconds:.2f}",
        short_json(". ".join(notes), 200),
    )


def run_table(result: Result) -> RunTable:
    """The runs; without script and on paper the first ones are there."""
    rows = [run_row(run) for run in result.runs]
    outcomes = Counter(run.outcome for run in result.runs)
    return RunTable(
        len(rows),
        [(o, number, OUTCOME_MEANING[o]) for o, number in outcomes.items()],
        rows[:RUNS_WITHOUT_SCRIPT],
        Markup(_for_script(json.dumps(rows, ensure_ascii=False))),  # noqa: S704 - escaped for it
    )


def _for_script(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
