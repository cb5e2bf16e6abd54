"""The page above several results: a table of verdicts with a link to each report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bettong.lineage.results import Result, Verdict
from bettong.reports.matrix import fault_matrix, matrix_table
from bettong.reports.templating import render
from bettong.reports.words import VERDICT_SIGN, VERDICT_WORD, level_line

_BADGES = {"valid": "good", "invalid": "violation", "unknown": "vacuous"}


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
    sinks = [result for result, _ in results if result.kind == "sink"]
    return render(
        "index.html",
        title=f"{VERDICT_SIGN[verdict]} {len(results)} results: {verdict}",
        verdict=verdict,
        sign=VERDICT_SIGN[verdict],
        meaning=VERDICT_WORD[verdict],
        counts=", ".join(f"{number} {name}" for name, number in sorted(counts.items())),
        rows=[_row(result, link) for result, link in results],
        matrix=matrix_table(fault_matrix(sinks)) if len(sinks) > 1 else None,
    )


def _row(result: Result, link: str) -> dict[str, object]:
    return {
        "badge": _BADGES[result.verdict],
        "sign": VERDICT_SIGN[result.verdict],
        "verdict": result.verdict,
        "link": link,
        "scenario": result.scenario,
        "level": level_line(result),
        "runs": len(result.runs),
        "seconds": f"{result.duration_s:.0f}",
        "reason": result.reason,
    }
