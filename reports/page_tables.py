"""Tables of the page: anomalies with their records, runs with a filter, the matrix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from bettong.lineage.results import Anomaly, Result, Run
from bettong.reports.matrix import matrix_table
from bettong.reports.sample import anomaly_counts, sample_anomalies, short_json
from bettong.reports.words import KIND_MEANING, OUTCOME_MEANING, faults_line

SHOWN_ANOMALIES = 50
AT_ONCE = 5
RUNS_WITHOUT_SCRIPT = 100
RUN_COLUMNS = ("Outcome", "Faults", "Anomalies", "Seconds", "Note")


def anomaly_section(result: Result) -> Iterator[str]:
    """How many of each kind, and a sample of them."""
    counts = anomaly_counts(result)
    if not any(counts.values()):
        return
    yield '<dl class="facts">'
    for kind, number in counts.items():
        meaning = KIND_MEANING.get(kind, "")
        yield f'<div><dt title="{meaning}">{escape(kind)}</dt><dd>{number:,}</dd></div>'
    yield "</dl>"
    yield from anomaly_table(result.anomalies, sum(counts.values()), SHOWN_ANOMALIES)


def anomaly_table(anomalies: Sequence[Anomaly], total: int, limit: int) -> Iterator[str]:
    """At most ``limit`` anomalies; says so when there are more."""
    shown = sample_anomalies(anomalies, limit)
    if len(shown) < total:
        yield f"<p>A sample: {len(shown):,} of {total:,} anomalies, the same share of each kind. "
        yield f"{len(anomalies):,} are in result.json.</p>"
    yield from _rows(shown[:AT_ONCE])
    if len(shown) > AT_ONCE:
        yield f"<details><summary>{len(shown) - AT_ONCE:,} more</summary>"
        yield from _rows(shown[AT_ONCE:])
        yield "</details>"


def _content(value: Any) -> str:
    """What was expected or seen, in words where it is a count of occurrences."""
    if not isinstance(value, dict) or not isinstance(value.get("times"), int):
        return "" if value is None else short_json(value)
    times = "once" if value["times"] == 1 else f"{value['times']} times"
    places = value.get("places")
    return f"{times}, at places {', '.join(map(str, places))}" if places else times


def _rows(shown: Sequence[Anomaly]) -> Iterator[str]:
    yield '<div class="scroll"><table class="stack"><thead><tr>'
    heads = ("Kind", "Messages", "Key", "Expected", "Seen", "Note")
    yield "".join(f'<th scope="col">{h}</th>' for h in heads) + "</tr></thead><tbody>"
    for a in shown:
        more = f" and {len(a.messages) - 5:,} more" if len(a.messages) > 5 else ""
        cells = (
            a.kind,
            ", ".join(a.messages[:5]) + more,
            a.key or "",
            _content(a.expected),
            _content(a.seen),
            a.note or KIND_MEANING[a.kind],
        )
        yield (
            "<tr>"
            + "".join(
                f'<td data-label="{head}">{escape(cell)}</td>'
                for head, cell in zip(heads, cells, strict=True)
            )
            + "</tr>"
        )
    yield "</tbody></table></div>"


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


def run_section(result: Result) -> Iterator[str]:
    """The run table. Rows beyond the first come from JSON by script, in pages; without script
    and on paper the first ones are there."""
    if not result.runs:
        return
    outcomes = Counter(r.outcome for r in result.runs)
    reported = ", ".join(
        f'{number:,} <span class="{o}" title="{OUTCOME_MEANING[o]}">{o}</span>'
        for o, number in outcomes.items()
    )
    yield f"<p>{len(result.runs):,} runs: {reported}.</p>"
    options = "".join(f'<option value="{o}">{o} ({n:,})</option>' for o, n in outcomes.items())
    yield '<div class="controls" id="controls" hidden><label>Contains'
    yield '<input id="filter" type="search" placeholder="e.g. crash(driver Duplicate"></label>'
    yield f'<label>Outcome<select id="outcome"><option value="">all</option>{options}</select>'
    yield '</label></div><p id="run-status" role="status" aria-live="polite">'
    first = result.runs[:RUNS_WITHOUT_SCRIPT]
    if len(first) < len(result.runs):
        yield f"The first {len(first)} of {len(result.runs):,} runs; all are in result.json."
    yield '</p><div class="scroll"><table class="stack" id="runs"><thead><tr>'
    yield "".join(
        f'<th scope="col"{" class=number" if h == "Seconds" else ""}>{h}</th>' for h in RUN_COLUMNS
    )
    yield "</tr></thead><tbody>"
    for run in first:
        cells = run_row(run)
        yield f'<tr><td data-label="Outcome"><span class="badge {run.outcome}">{run.outcome}</span>'
        yield "</td>"
        for head, cell in zip(RUN_COLUMNS[1:], cells[1:], strict=True):
            number = ' class="number"' if head == "Seconds" else ""
            yield f'<td data-label="{head}"{number}>{escape(cell)}</td>'
        yield "</tr>"
    yield '</tbody></table></div><p><button type="button" id="more" hidden>Show more</button></p>'
    data = json.dumps([run_row(r) for r in result.runs], ensure_ascii=False)
    yield f'<script type="application/json" id="run-data">{_for_script(data)}</script>'


def _for_script(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def matrix_section(result: Result) -> Iterator[str]:
    """``details["matrix"]``: rows (sinks) by columns (kinds of fault)."""
    matrix = result.details.get("matrix")
    if not isinstance(matrix, dict) or not matrix.get("rows"):
        return
    yield from matrix_table(matrix)
