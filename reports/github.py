"""What GitHub Actions shows by itself: annotations and the job's summary."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bettong.lineage.results import Result
from bettong.reports.markdown import markdown_report
from bettong.reports.words import faults_line, in_quarantine, level_line

ANNOTATIONS = 10
"""GitHub shows no more of one step."""


def github_annotations(results: Sequence[Result]) -> list[str]:
    """Workflow commands, one for each result that is not valid and each counterexample of it."""
    return [line for result in results for line in _of(result)][:ANNOTATIONS]


def _of(result: Result) -> Iterator[str]:
    if result.verdict == "valid":
        return
    kind = "error" if result.verdict == "invalid" else "warning"
    kind = "notice" if in_quarantine(result) else kind
    title = f"{result.scenario}: {result.verdict}"
    if not result.counterexamples:
        yield _command(kind, title, f"{level_line(result)}. {result.reason}")
    for example in result.counterexamples:
        reported = [faults_line(example.faults), example.words, example.replay]
        yield _command(kind, title, "\n".join(t for t in reported if t))


def _command(kind: str, title: str, message: str) -> str:
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = name.replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{escaped}"


def announce(results: Sequence[Result], env: Mapping[str, str] = os.environ) -> list[str]:
    """Lines to print under GitHub Actions, after adding to the job's summary; elsewhere none."""
    if env.get("GITHUB_ACTIONS") != "true":
        return []
    summary = env.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.writelines(markdown_report(result) + "\n" for result in results)
    return github_annotations(results)
