"""The page above several results: a table of verdicts with a link to each report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from bettong.lineage.results import Result, Verdict
from bettong.reports.matrix import fault_matrix, matrix_table
from bettong.reports.page import page_head
from bettong.reports.words import VERDICT_SIGN, VERDICT_WORD, level_line


def overall(results: Sequence[Result]) -> Verdict:
    """The verdict on all: one violation makes it invalid, else one unknown makes it unknown. None
    at all fail nothing: those of a suite that are in quarantine, a shard that was dealt nothing."""
    verdicts = {result.verdict for result in results}
    if "invalid" in verdicts:
        return "invalid"
    return "unknown" if "unknown" in verdicts else "valid"


def index_page(results: Sequence[tuple[Result, str]]) -> str:
    """An HTML page for (result, link to its report)."""
    verdict = overall([result for result, _ in results])
    counts = Counter(result.verdict for result, _ in results)
    reported = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
    lines = [*page_head(f"{VERDICT_SIGN[verdict]} {len(results)} results: {verdict}")]
    lines.append(f'<header class="{verdict}"><div><h1><span class="sign" aria-hidden="true">')
    lines.append(f"{VERDICT_SIGN[verdict]}</span> {VERDICT_WORD[verdict]}: {verdict}</h1>")
    lines.append(f'<p class="level">{reported}</p></div></header><main id="main"><h2>Results</h2>')
    lines.append('<div class="scroll"><table class="stack"><thead><tr>')
    heads = ("Verdict", "What", "Level", "Runs", "Why")
    lines.append("".join(f'<th scope="col">{h}</th>' for h in heads) + "</tr></thead><tbody>")
    for result, link in results:
        badge = {"valid": "good", "invalid": "violation", "unknown": "vacuous"}[result.verdict]
        cells = (
            f'<span class="badge {badge}">{VERDICT_SIGN[result.verdict]} {result.verdict}</span>',
            f'<a href="{escape(link)}">{escape(result.scenario)}</a>',
            escape(level_line(result)),
            f"{len(result.runs):,}",
            escape(result.reason),
        )
        row = "".join(
            f'<td data-label="{h}">{cell}</td>' for h, cell in zip(heads, cells, strict=True)
        )
        lines.append(f"<tr>{row}</tr>")
    lines.append("</tbody></table></div>")
    sinks = [result for result, _ in results if result.kind == "sink"]
    if len(sinks) > 1:
        lines.append('<h2 id="matrix">Sinks by kinds of fault</h2>')
        lines += matrix_table(fault_matrix(sinks))
    lines.append("</main></body></html>")
    return "\n".join(lines)
