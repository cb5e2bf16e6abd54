"""What commands that judge print and write: the one consumer of their events on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from bettong.harness.cli.console import ToReader, unless_gone
from bettong.harness.cli.printing import plain
from bettong.harness.cli.progress import ProgressLine
from bettong.harness.cli.standing import ProgressLines
from bettong.harness.cli.supervisor import EXIT_USAGE
from bettong.harness.cli.verdict_text import Line, lines_of
from bettong.harness.events import Event, Finished, Handler, ignore
from bettong.lineage.results import EXIT_CODES, Result
from bettong.reports import announce, overall, write_reports

Select = Callable[[Sequence[Result]], Sequence[Result]]
Text = Callable[[Result, Path | None], Iterable[Line]]


def exit_code(results: Sequence[Result], counted: Select = lambda results: results) -> int:
    """The exit code for all of them together: the only place that gives 0 or 1.

    1 needs an anomaly that a reader can be shown, 0 a result at all, also when it is one that does
    not count: a suite of which all is in quarantine fails nothing. Where nothing is violated, one
    that could not be run for a mistake makes it 2.
    """
    verdict = overall(counted(results))
    shown = any(_has_anomaly(result) for result in counted(results))
    if not results or (verdict == "invalid" and not shown):
        return EXIT_CODES["unknown"]
    if verdict == "unknown" and any("error" in result.details for result in counted(results)):
        return EXIT_USAGE
    return EXIT_CODES[verdict]


def _has_anomaly(result: Result) -> bool:
    return bool(result.anomalies) or any(c.anomalies for c in result.counterexamples)


class Output:
    """Writes the reports of each answer, prints it, and knows the exit code.

    A handler of events and a context manager: at its end what is left to say is said. That
    whoever reads what is printed goes away changes nothing of the answer.

    Args:
        as_json: print the results as JSON when all are there, and nothing else.
        quiet: show no progress.
        progress_json: print the progress as lines of JSON on standard error instead.
        text: what is printed of an answer, given it and its folder.
    """

    def __init__(
        self,
        *,
        as_json: bool = False,
        quiet: bool = False,
        progress_json: bool = False,
        text: Text = lines_of,
    ) -> None:
        self.finished: list[Finished] = []
        self._as_json = as_json
        self._text = text
        self._console = ToReader(highlight=False, soft_wrap=True)
        console = ToReader(stderr=True, highlight=False)
        self._line = ProgressLine(console)
        shown = console.is_terminal and not (quiet or as_json)
        self._progress: Handler = self._line if shown else ignore
        if progress_json:
            self._progress = ProgressLines(sys.stderr)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._line.stop()
        if kind is None and self.finished:
            unless_gone(self._close, sys.stdout)

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        unless_gone(lambda: self._progress(event), sys.stderr)
        if isinstance(event, Finished):
            self.finished.append(event)
            if event.out is not None:
                write_reports(event.result, event.out)
            self.print(self._text(event.result, event.out))

    @property
    def results(self) -> list[Result]:
        """The answers so far."""
        return [event.result for event in self.finished]

    def exit_code(self, counted: Select = lambda results: results) -> int:
        """The exit code for all answers that count."""
        return exit_code(self.results, counted)

    def print(self, lines: Iterable[Line]) -> None:
        """Print lines, unless JSON is asked for."""
        if not self._as_json:
            unless_gone(lambda: self._say(lines), sys.stdout)

    def _say(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            self._console.print(plain(text), style=style or None, markup=False)

    def _close(self) -> None:
        if not self._as_json:
            for line in announce(self.results):
                click.echo(line)
            return
        values = [result.to_dict() for result in self.results]
        click.echo(json.dumps(values[0] if len(values) == 1 else values, indent=1))
