"""What check-sink and check-job have in common: options, the targets of a call, how they are
told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import click

from bettong.harness.queries.request import Progress, Request
from bettong.harness.queries.run.environment import ArenaFor, spark_environments
from bettong.harness.queries.secrets import masked
from bettong.harness.search.bounds import DEFAULT, PROFILE_NAMES
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.results import GUARANTEES, Result
from bettong.reports import write_index, write_reports

_OUT = Path("bettong-out")
F = TypeVar("F", bound=Callable[..., object])
Check = Callable[[Request, ArenaFor, Progress], Result]
Unusable = Callable[[Request, BettongError], Result]


_OPTIONS = (
    click.option(
        "--endpoint",
        "endpoints",
        multiple=True,
        metavar="NAME=HOST:PORT",
        help="Where a server that it talks to really is.",
    ),
    click.option(
        "--expect",
        type=click.Choice(GUARANTEES),
        default="effectively-once",
        show_default=True,
        help="The level that is asked for; less exits 1.",
    ),
    click.option(
        "--bounds",
        type=click.Choice(PROFILE_NAMES),
        default=DEFAULT,
        show_default=True,
        help="quick: one fault at a time; standard: two; thorough: three.",
    ),
    click.option(
        "--together",
        type=click.IntRange(1, 3),
        help="How many faults may strike together, in place of what --bounds says.",
    ),
    click.option(
        "--budget",
        default="15m",
        show_default=True,
        metavar="RUNS|15m",
        help="How many runs, or how long, the search may take at most.",
    ),
    click.option("--only", multiple=True, metavar="FAULT", help="Run this one fault set (repeat)."),
    click.option("--real-kills", is_flag=True, help="Make every crash a SIGKILL: slow."),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for result, reports and counterexamples. Default: bettong-out/TARGET.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the result and nothing else."),
    click.option("--quiet", is_flag=True, help="No progress."),
)


def query_options(command: F) -> F:
    """The options of a command that judges a query."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def pairs(given: tuple[str, ...], option: str) -> Mapping[str, str]:
    """``NAME=VALUE`` of an option that may be repeated; raises UsageError."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {masked(text)!r}: write NAME=VALUE")
        found[name] = value
    return found


def write(result: Result, folder: Path | None, silent: bool) -> None:
    """Write a result and its reports; print it, unless silent."""
    if folder is not None:
        result.write(folder)
        write_reports(result, folder)
    if not silent:
        _say(result)


def notify(results: Sequence[Result], as_json: bool) -> None:
    """Print results as JSON, if that is asked, and nothing else."""
    if as_json:
        values = [result.to_dict() for result in results]
        click.echo(json.dumps(values[0] if len(values) == 1 else values, indent=1))


def _level(result: Result) -> str:
    return "level not known" if result.verdict == "unknown" else result.guarantee


def _say_all(results: Sequence[tuple[str, Result]]) -> None:
    """A line for each target."""
    width = max(len(target) for target, _ in results)
    click.echo()
    for target, result in results:
        runs = f"{result.coverage.executions} runs"
        click.echo(f"{target:{width}}  {_level(result):16}  {result.verdict:7}  {runs}")


def _say(result: Result) -> None:
    click.echo(f"{result.scenario}: {_level(result)} ({result.verdict})")
    click.echo(f"  {result.reason}")
    if result.ordering == "per-key":
        click.echo("  order per key is kept")
    if result.details.get("atomic") == "torn":
        click.echo("  batches are not atomic: a reader saw a part of one")
    for varies in result.details.get("envelope", ()):
        click.echo(f"  this depends on how batches are cut: {varies}")
    for asked, anew in result.details.get("new_checkpoint", {}).items():
        click.echo(f"  {asked}, over the old target: {anew['guarantee']}")
        if anew["words"]:
            click.echo(f"    {anew['words']}")
    for counterexample in result.counterexamples:
        click.echo(f"\n  {' + '.join(counterexample.faults) or 'without any fault'}")
        click.echo(f"    {counterexample.words}")
        click.echo(f"    Repair: {counterexample.advice}")
        click.echo(f"    See it again: {counterexample.replay}")
    c = result.coverage
    click.echo(
        f"\n  {c.executions} runs, {c.injected} with faults, {c.pruned} fault sets folded, "
        f"{result.duration_s:.0f} s"
    )


def judge_targets(
    request: Request,
    targets: Sequence[str],
    check: Check,
    unusable: Unusable,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> list[Result]:
    """Judge each target with drivers that all share; write, print and return the results."""
    silent = quiet or as_json or not sys.stderr.isatty()

    def progress(line: str) -> None:
        if not silent:
            click.echo(f"  {line}", err=True)

    results: list[Result] = []
    links = []
    with spark_environments(progress) as arena_for:
        for target in targets:
            alone = len(targets) == 1
            folder = out if out is not None and alone else (out or _OUT) / _folder(target)
            asked = replace(request, target=target, out=folder)
            try:
                results.append(check(asked, arena_for, progress))
            except BettongError as e:
                if alone:
                    raise
                results.append(unusable(asked, e))
            write(results[-1], folder, as_json)
            links.append((results[-1], f"{quote(folder.name)}/report.html"))
    if len(targets) > 1:
        write_index(links, out or _OUT)
        if not as_json:
            _say_all(list(zip(targets, results, strict=True)))
    notify(results, as_json)
    return results


def _folder(target: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in target)
