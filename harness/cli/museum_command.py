"""``bettong museum``: real bugs and traps, found again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bettong.harness.catalog import entries
from bettong.harness.cli.output import Output
from bettong.harness.cli.printing import say
from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import spark_environments
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget


@click.command("museum", short_help="Real bugs of streaming jobs, found again without a hint.")
@click.argument("id", required=False)
@click.option(
    "--budget",
    default="10m",
    show_default=True,
    metavar="RUNS|10m",
    help="How many runs, or how long, at most.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for result and reports. Default: bettong-out/museum-ID.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(
    ctx: click.Context, id: str | None, budget: str, out: Path | None, as_json: bool, quiet: bool
) -> None:
    """Real bugs and traps of streaming jobs, by their public ids: without ID the list of them,
    with ID the job that shows it is checked as if nothing were known.

    Exit codes: 0 what the list says of it was seen again (found, or not found), 1 it was not,
    2 there is no such exhibit or none to run.
    """
    exhibits = {entry.name: entry for entry in entries("exhibit")}
    if id is None:
        _list(exhibits, as_json)
        return
    exhibit: Any = exhibits[one_of(id, tuple(exhibits), "exhibit")].load()
    if not exhibit.target:
        raise UsageError(f"{id} is not tried: {exhibit.note}")
    folder = out or Path("bettong-out") / f"museum-{id}"
    request = Request(
        exhibit.target,
        budget=Budget.parse(budget),
        faults=1,
        first=True,
        contract="job",
        out=folder,
    )
    with Output(as_json=as_json, quiet=quiet) as output, spark_environments(output) as environments:
        result = check_one_job(request, environments, output)
    found, expected = _found(exhibit, result), bool(exhibit.shown)
    if not as_json:
        outcome = "found" if found else "NOT found" if expected else "not found, as the list says"
        if result.verdict == "unknown" and not found:
            outcome = f"nothing can be concluded ({result.reason})"
        say(f"{id}: {outcome}: {exhibit.title}")
    ctx.exit(0 if found == expected and (found or result.verdict == "valid") else 1)


def _found(exhibit: Any, result: Result) -> bool:
    """Whether a result shows what an exhibit is known by; anything, where that is nothing."""
    seen = [result.reason, *result.details.get("envelope", ())]
    seen += [example.words for example in result.counterexamples]
    if not exhibit.shown:
        return result.verdict == "invalid"
    return result.verdict != "valid" and any(exhibit.shown in text for text in seen)


def _list(exhibits: dict[str, Any], as_json: bool) -> None:
    loaded = [entry.load() for entry in exhibits.values()]
    if as_json:
        listed = [{**asdict(exhibit), "tried": exhibit.tried} for exhibit in loaded]
        click.echo(json.dumps(listed, indent=1))
        return
    width = max(len(exhibit.id) for exhibit in loaded)
    for exhibit in sorted(loaded, key=lambda e: (e.tried, e.id)):
        say(f"{exhibit.id:{width}}  {exhibit.tried}: {exhibit.title} ({exhibit.note})")
