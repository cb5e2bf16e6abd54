"""``bettong demo``: in a minute, what Bettong does to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import get_args

import click

from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backends.base import Runner
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cli.output import Output, exit_code
from bettong.harness.cli.verdict_text import Line
from bettong.harness.events import Event, RunJudged, broadcast
from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.bounds import SearchBounds
from bettong.lineage.results import EXIT_CODES, Result

RIGHT, MUTANT = "word_count", "sink_commits_again"
_WORDS = 6
_ROWS = 3
_WIDTH = 80


class _Reader:
    """What a reader of the receiver saw: rows of the clean run, and of the latest run."""

    def __init__(self) -> None:
        self.clean: list[tuple[str, str]] = []
        self.latest: Mapping[str, str] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunJudged) and event.outputs:
            if not event.judged.faults:
                self.clean = list(event.outputs)
            self.latest = dict(event.outputs)

    def totals(self) -> str:
        """The last total of each of the most frequent words."""
        last: dict[str, int] = {}
        for _, row in self.clean:
            word, _, count = row.rpartition(" ")
            last[word] = int(count)
        most = sorted(last.items(), key=lambda item: (-item[1], item[0]))[:_WORDS]
        return "   ".join(f"{word} {count}" for word, count in most)


@click.command("demo", short_help="See a pipeline with one mistake in it broken, and why.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("bettong-out/demo"),
    show_default=True,
    help="Folder for results and reports.",
)
@click.option(
    "--runner",
    type=click.Choice(get_args(Runner)),
    default="spark",
    show_default=True,
    help="in-process: without Spark, for machines without Java.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(out: Path, runner: Runner, quiet: bool) -> None:
    """What Bettong does: count the words of a text on Spark, search for the crash that breaks the
    same pipeline with one mistake in it, and show what a reader would have seen.

    The search runs in-process, where no JVM has to start, and so does what it finds, once more: on
    Spark the same crash may come where nothing is replayed.
    """
    reader = _Reader()

    def text(result: Result, folder: Path | None) -> Iterator[Line]:
        if result.scenario == RIGHT:
            yield from _right(result, reader)
        elif folder == out / "search":
            yield from _chosen(result)
        else:
            yield from _seen(result, reader, out)

    with Output(quiet=quiet, text=text) as output, LocalBackend(runner=runner) as backend:
        on_event = broadcast(reader, output)
        output.print(_before(runner))
        right = run_scenario(RIGHT, backend=backend, out=out / "right", on_event=on_event)
        output.print(_mistake())
        with LocalBackend(runner="in-process") as quick:
            crash = SearchBounds(crashes=1, losses=0)
            search = out / "search"
            found = run_scenario(MUTANT, crash, backend=quick, out=search, on_event=on_event)
            results = [found]
            for example in found.counterexamples[:1]:
                schedule = Schedule.from_dict(example.schedule or {})
                results.append(
                    run_scenario(
                        MUTANT, schedule, backend=quick, out=out / "broken", on_event=on_event
                    )
                )
    shown = len(results) == 2 and all(result.verdict == "invalid" for result in results)
    click.get_current_context().exit(exit_code([right]) if shown else EXIT_CODES["unknown"])


def _before(runner: Runner) -> Iterator[Line]:
    driver = "Spark" if runner == "spark" else "driver"
    yield Line("1. A pipeline counts the words of a text, each part a process of its own:", "bold")
    yield Line(f"   sender -> gateway -> {driver} -> receiver; every link goes through Toxiproxy.")


def _right(result: Result, reader: _Reader) -> Iterator[Line]:
    yield Line(f"   A reader sees {len(reader.clean)} running totals; the last ones:")
    yield Line(f"     {reader.totals()}")
    if result.verdict == "valid":
        yield Line(
            "   A plain interpreter makes the same of the same text: nothing is lost, nothing"
        )
        yield Line("   repeated, nothing out of order.")
    else:
        yield Line(f"   {result.verdict}: {result.reason}", "red")


def _mistake() -> Iterator[Line]:
    yield Line("")
    yield Line(f"2. The same pipeline with one honest mistake: {_title()}.", "bold")
    yield Line("   Without a fault it does not show. Bettong reads from a good run why its outputs")
    yield Line("   came out, and crashes what they rest on, one at a time.")


def _title() -> str:
    return load_scenario(MUTANT).title


def _chosen(result: Result) -> Iterator[Line]:
    c = result.coverage
    if not result.counterexamples:
        yield Line(f"   {result.verdict}: {result.reason}", "red")
        return
    example = result.counterexamples[0]
    yield Line(
        f"   After {c.executions} runs: of the crashes that the lineage names, this one breaks it:"
    )
    yield Line(f"     {' + '.join(example.faults)}", "red")
    for line in wrap(example.words, _WIDTH):
        yield Line(f"     {line}")


def _seen(result: Result, reader: _Reader, out: Path) -> Iterator[Line]:
    yield Line("")
    yield Line("3. The same fault, once more from the beginning. What a reader sees now:", "bold")
    for anomaly in result.anomalies[:_ROWS]:
        row = reader.latest.get(anomaly.messages[0], "")
        times = (anomaly.seen or {}).get("times") if isinstance(anomaly.seen, dict) else None
        often = f", {times} times" if times else ""
        yield Line(f"     {anomaly.kind}: {anomaly.messages[0]} “{row}”{often}", "red")
    if len(result.anomalies) > _ROWS:
        yield Line(f"     and {len(result.anomalies) - _ROWS} more")
    for example in result.counterexamples:
        yield Line(f"   Repair:         {example.advice}")
        yield Line(f"   See it again:   {example.replay}")
    if not result.counterexamples:
        yield Line(f"     {result.verdict}: {result.reason}", "red")
    yield Line(f"   Open this page: {out / 'search' / 'report.html'}")
    yield Line("")
    yield Line(
        "Your own sink: bettong check-sink my_sink.py:MySink    All that ships: bettong list"
    )
