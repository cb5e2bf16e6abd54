"""The report as Markdown, for pull requests and CI summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bettong.lineage.results import Anomaly, Result
from bettong.lineage.visible import visible
from bettong.reports.sample import anomaly_counts, sample_anomalies, short_json
from bettong.reports.words import VERDICT_SIGN, faults_line, level_line

SHOWN_COUNTEREXAMPLES = 5
SHOWN_ANOMALIES = 10


def markdown_report(result: Result) -> str:
    """Verdict and level first, then each counterexample with its replay line."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    yield f"## {VERDICT_SIGN[result.verdict]} {_code(result.scenario)}: {result.verdict}"
    yield f"\n**{level_line(result)}**"
    if result.reason:
        yield f"\n{_plain(result.reason)}"
    for number, example in enumerate(result.counterexamples[:SHOWN_COUNTEREXAMPLES], 1):
        yield f"\n### Counterexample {number}: {_code(faults_line(example.faults))}\n"
        if example.words:
            yield _plain(example.words) + "\n"
        yield from _anomalies(example.anomalies, len(example.anomalies))
        if example.advice:
            yield f"\nTo repair: {_plain(example.advice)}"
        if example.replay:
            yield f"\nSee it again:\n\n{_block(example.replay)}"
    left = len(result.counterexamples) - SHOWN_COUNTEREXAMPLES
    if left > 0:
        yield f"\n{left:,} more counterexamples are in result.json."
    if result.anomalies and not result.counterexamples:
        yield "\n### Anomalies\n"
        yield from _anomalies(result.anomalies, sum(anomaly_counts(result).values()))
    if result.runs:
        outcomes = Counter(r.outcome for r in result.runs)
        reported = ", ".join(f"{n:,} {o}" for o, n in outcomes.items())
        yield f"\n{len(result.runs):,} runs: {reported}."
    if result.coverage.complete:
        yield "\nNothing within the bounds is left to be tried."
    for line in result.assumptions:
        yield f"\n- {_plain(line)}"


def _anomalies(anomalies: tuple[Anomaly, ...], total: int) -> Iterator[str]:
    shown = sample_anomalies(anomalies, SHOWN_ANOMALIES)
    if not shown:
        return
    yield "| Kind | Messages | Key | Expected | Seen | Note |\n" + "| --- " * 6 + "|"
    for a in shown:
        cells = (
            a.kind,
            ", ".join(a.messages[:5]),
            a.key or "",
            "" if a.expected is None else short_json(a.expected, 80),
            "" if a.seen is None else short_json(a.seen, 80),
            a.note or "",
        )
        yield "| " + " | ".join(_cell(c) for c in cells) + " |"
    if len(shown) < total:
        yield f"\n{len(shown)} of {total:,} anomalies are shown."


def _code(text: str) -> str:
    """Code that its own backticks cannot end."""
    clean = visible(" ".join(text.splitlines()))
    longest = max((len(run) for run in _backticks(clean)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{clean}{space}{fence}"


def _backticks(text: str) -> Iterator[str]:
    run = ""
    for character in text:
        if character == "`":
            run += character
        else:
            yield run
            run = ""
    yield run


def _block(text: str) -> str:
    fence = "`" * max(3, 1 + max(len(run) for run in _backticks(text)))
    return f"{fence}sh\n{visible(text)}\n{fence}"


def _cell(text: str) -> str:
    return _code(text.replace("|", "\\|")) if text else ""


def _plain(text: str) -> str:
    """Text without markup of its own."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return visible(" ".join(text.split()))
