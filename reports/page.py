"""The HTML report: one file that needs nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path

from bettong.lineage.results import Result
from bettong.reports.page_counterexample import counterexample_section
from bettong.reports.page_tables import anomaly_section, matrix_section, run_section
from bettong.reports.plots import timeline_section
from bettong.reports.words import LEVEL_MEANING, VERDICT_SIGN, VERDICT_WORD, level_line, shard_of

SHOWN_COUNTEREXAMPLES = 20
RENDERED_DETAILS = frozenset(
    ["anomaly_counts", "bands", "good_trace", "lineage", "matrix", "pictures", "timeline"]
)
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def html_report(result: Result, directory: Path) -> str:
    """The page of one result; traces are read from the directory that the result is in."""
    sections = list(_sections(result, directory))
    return "\n".join(
        [
            *page_head(f"{VERDICT_SIGN[result.verdict]} {result.scenario}: {result.verdict}"),
            *_header(result, [(name, title) for name, title, _ in sections]),
            '<main id="main">',
            *(line for _, _, lines in sections for line in lines),
            "</main>",
            *_footer(result),
        ]
    )


def page_head(title: str) -> Iterator[str]:
    """Everything before the visible page."""
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="icon" href="data:,">'
    yield f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head><body>"


def _asset(name: str) -> str:
    return resources.files("bettong.reports").joinpath(name).read_text("utf-8")


def _sections(result: Result, directory: Path) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(id, title, lines) of each section that has something to say."""
    total = len(result.counterexamples)
    if total:
        lines = ['<section id="counterexamples"><h2>Counterexamples</h2>']
        if total > SHOWN_COUNTEREXAMPLES:
            lines.append(
                f"<p>{SHOWN_COUNTEREXAMPLES} of {total:,} are drawn; all are in result.json.</p>"
            )
        for number in range(min(total, SHOWN_COUNTEREXAMPLES)):
            lines += counterexample_section(result, number, directory)
        yield "counterexamples", "Counterexamples", [*lines, "</section>"]
    for name, title, content in (
        ("anomalies", "Anomalies", anomaly_section(result)),
        ("matrix", "Matrix", matrix_section(result)),
        ("timeline", "Over time", timeline_section(result)),
        ("coverage", "Coverage", _coverage(result)),
        ("run-table", "Runs", run_section(result)),
        ("basis", "What this rests on", _basis(result)),
    ):
        lines = list(content)
        if lines:
            yield name, title, [f'<section id="{name}"><h2>{title}</h2>', *lines, "</section>"]


def _when(started_at: str) -> str:
    """The time as people write it; as it is when it is no time."""
    try:
        return f"{datetime.fromisoformat(started_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return started_at


def _header(result: Result, sections: Sequence[tuple[str, str]]) -> Iterator[str]:
    sign = VERDICT_SIGN[result.verdict]
    yield f'<a class="skip" href="#main">To the report</a><header class="{result.verdict}"><div>'
    when = f", {escape(_when(result.started_at))}" if result.started_at else ""
    yield (
        f'<p class="what">Bettong: {escape(result.kind)} <code>{escape(result.scenario)}</code>'
        f"{when}, {result.duration_s:,.1f} s</p>"
    )
    yield f'<h1><span class="sign" aria-hidden="true">{sign}</span> '
    yield f"{VERDICT_WORD[result.verdict]}: {escape(result.verdict)}</h1>"
    yield f'<p class="level">{escape(level_line(result))}</p>'
    if result.verdict != "unknown" and result.kind != "protocol":
        yield f"<p>{escape(result.guarantee)}: {LEVEL_MEANING[result.guarantee]}.</p>"
    if result.reason:
        yield f"<p>{escape(result.reason)}</p>"
    shard = shard_of(result)
    if shard:
        yield f"<p>This is shard {shard[0]} of {shard[1]}: a part of the answer.</p>"
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in sections)
    yield f'<nav aria-label="Sections"><ul>{links}</ul></nav></div></header>'


def _coverage(result: Result) -> Iterator[str]:
    c = result.coverage
    if not c.executions and not result.runs:
        return
    space = "" if c.fault_space is None else f" of {c.fault_space:,} schedules within the bounds"
    yield (
        "<p>Nothing within the bounds is left to be tried.</p>"
        if c.complete
        else "<p>Not everything within the bounds was tried.</p>"
    )
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
    cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{v:,}</dd></div>" for k, v in rows)
    yield f'<dl class="facts">{cells}</dl>'


def _basis(result: Result) -> Iterator[str]:
    if result.assumptions:
        yield '<ul class="plain">'
        yield from (f"<li>{escape(line)}</li>" for line in result.assumptions)
        yield "</ul>"
    yield f"<p>Seed {result.seed}. Bettong {escape(result.tool_version)}.</p><details>"
    reported = "".join(
        f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>"
        for k, v in sorted(result.environment.items())
    )
    yield f"<summary>Environment</summary><table><tbody>{reported}</tbody></table></details>"
    rest = {k: v for k, v in result.details.items() if k not in RENDERED_DETAILS}
    if rest:
        text = json.dumps(rest, indent=1, ensure_ascii=False, default=str)
        if len(text) > 20_000:
            text = text[:20_000] + "\n… (the rest is in result.json)"
        yield f"<details><summary>Details</summary><pre>{escape(text)}</pre></details>"


def _footer(result: Result) -> Iterator[str]:
    yield (
        f"<footer>Made by Bettong {escape(result.tool_version)} from result.json alone. "
        "This page loads nothing from anywhere.</footer>"
    )
    yield f"<script>{_asset('report.js')}</script></body></html>"
