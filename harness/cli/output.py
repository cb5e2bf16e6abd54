"""What commands that judge print and write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bettong.harness.runs.run import RunRecord
from bettong.lineage.results import EXIT_CODES, Result
from bettong.reports import announce, overall, write_reports
from bettong.reports.words import VERDICT_SIGN, level_line

_STYLES = {"valid": "green", "invalid": "red", "unknown": "yellow"}
_ANOMALIES = 5


def exit_code(results: Sequence[Result]) -> int:
    """The exit code for all of them together: the only place that gives 0 or 1.

    1 needs an anomaly that a reader can be shown, 0 a result at all.
    """
    verdict = overall(results)
    if verdict == "invalid" and not any(_has_anomaly(result) for result in results):
        return EXIT_CODES["unknown"]
    return EXIT_CODES[verdict] if results else EXIT_CODES["unknown"]


def _has_anomaly(result: Result) -> bool:
    return bool(result.anomalies) or any(c.anomalies for c in result.counterexamples)


def notify(results: Sequence[tuple[Result, Path]], as_json: bool) -> None:
    """Write the reports, then print the verdicts, or JSON and nothing else."""
    for result, out in results:
        write_reports(result, out)
    only = [result for result, _ in results]
    if as_json:
        values = [result.to_dict() for result in only]
        click.echo(json.dumps(values[0] if len(values) == 1 else values, indent=1))
        return
    console = Console(highlight=False, soft_wrap=True)
    for result, out in results:
        _print(console, result, out)
    for line in announce(only):
        click.echo(line)


def _print(console: Console, result: Result, out: Path) -> None:
    style = _STYLES[result.verdict]
    sign = VERDICT_SIGN[result.verdict]
    console.print(f"{sign} {result.scenario}: {result.verdict}", style=style, markup=False)
    console.print(f"  {level_line(result)}; {result.reason}", markup=False)
    for limit in result.details.get("limits", ()):
        console.print(f"  not shown: {limit}", markup=False)
    for anomaly in result.anomalies[:_ANOMALIES]:
        reported = [anomaly.kind, ", ".join(anomaly.messages[:3])]
        reported += [f"key {anomaly.key}"] if anomaly.key is not None else []
        reported += [anomaly.note] if anomaly.note else []
        console.print("  " + "; ".join(reported), markup=False)
    if len(result.anomalies) > _ANOMALIES:
        console.print(f"  and {len(result.anomalies) - _ANOMALIES} more anomalies")
    for example in result.counterexamples:
        if example.faults:
            console.print(f"  faults: {', '.join(example.faults)}", markup=False)
        console.print(f"  again: {example.replay}", markup=False)
    console.print(
        f"  {len(result.runs)} runs in {result.duration_s:.1f} s; report: {out / 'report.html'}",
        markup=False,
    )


class RunProgress:
    """A line of progress on a terminal's standard error; silent elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}"),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def of(self, name: str) -> _Line:
        """A new line for one scenario."""
        return _Line(self._progress, self._progress.add_task(name, total=None, last="starting"))


class _Line:
    def __init__(self, progress: Progress, task: object) -> None:
        self._progress = progress
        self._task = task

    def __call__(self, done: int, planned: int | None, seen: RunRecord) -> None:
        last = f"{seen.outcome}: {', '.join(seen.schedule.ids) or 'no fault'}"
        self._progress.update(self._task, completed=done, total=planned, last=last[:80])  # type: ignore[arg-type]
