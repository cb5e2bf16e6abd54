"""``bettong check-sink``: which guarantee does this sink really give?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from bettong.harness.sinks.arena import arenas
from bettong.harness.sinks.check import check_one
from bettong.harness.sinks.request import Request
from bettong.harness.sinks.secrets import masked
from bettong.lineage.errors import UsageError
from bettong.lineage.results import EXIT_CODES, GUARANTEES, Guarantee, Result
from bettong.reports import write_reports


def _pairs(given: tuple[str, ...], option: str) -> Mapping[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {masked(text)!r}: write NAME=VALUE")
        pairs[name] = value
    return pairs


def _say(result: Result) -> None:
    click.echo(f"{result.scenario}: {result.guarantee} ({result.verdict})")
    click.echo(f"  {result.reason}")
    if result.ordering == "per-key":
        click.echo("  order per key is kept")
    if result.details.get("atomic") == "torn":
        click.echo("  batches are not atomic: a reader saw a part of one")
    anew = result.details.get("new_checkpoint")
    if anew:
        click.echo(f"  with a new checkpoint over the old target: {anew['guarantee']}")
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


@click.command("check-sink")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option("--option", "options", multiple=True, metavar="K=V", help="For format:NAME.")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Where a server that the sink talks to really is.",
)
@click.option(
    "--expect",
    type=click.Choice(GUARANTEES),
    default="effectively-once",
    show_default=True,
    help="The level that is asked for; less exits 1.",
)
@click.option(
    "--together",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    help="How many faults may strike together.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Seconds that the search may take.",
)
@click.option("--only", multiple=True, metavar="FAULT", help="Run this one fault set (repeat).")
@click.option("--real-kills", is_flag=True, help="Make every crash a SIGKILL: slow.")
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(["new-checkpoint"]),
    help="Ask this as well; reported apart.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write result.json and reports here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result and nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    options: tuple[str, ...],
    endpoints: tuple[str, ...],
    expect: Guarantee,
    together: int,
    budget: int,
    only: tuple[str, ...],
    real_kills: bool,
    also: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Is this sink effectively-once? Shows the smallest fault that proves it is not.

    TARGET is file.py:Object, module:Object or format:NAME. Exit codes: 0 the level holds, 1 it
    does not, 2 the target cannot be used, 3 nothing can be concluded.
    """
    request = Request(
        "",
        options=_pairs(options, "--option"),
        endpoints=_pairs(endpoints, "--endpoint"),
        expect=expect,
        faults=together,
        seconds=float(budget),
        only=only,
        real=real_kills,
        also=also,
    )
    silent = quiet or as_json or not sys.stderr.isatty()

    def progress(line: str) -> None:
        if not silent:
            click.echo(f"  {line}", err=True)

    results = []
    with arenas(progress) as arena_for:
        for target in targets:
            folder = out if out is None or len(targets) == 1 else out / _folder(target)
            asked = replace(request, target=target, out=folder)
            result = check_one(asked, arena_for, progress)
            results.append(result)
            if folder is not None:
                result.write(folder)
                write_reports(result, folder)
            if not as_json:
                _say(result)
    if as_json:
        values = [result.to_dict() for result in results]
        click.echo(json.dumps(values[0] if len(values) == 1 else values, indent=1))
    codes = {EXIT_CODES[result.verdict] for result in results}
    ctx.exit(next(code for code in (1, 3, 0) if code in codes))


def _folder(target: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in target)
