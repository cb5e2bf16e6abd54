"""``bettong check-sink``: which guarantee does this sink really give?"""

from __future__ import annotations

from pathlib import Path

import click

from bettong.harness.cli.query_options import (
    endpoints_of,
    judge_targets,
    pairs,
    query_options,
)
from bettong.harness.queries.check import check_one, unusable
from bettong.harness.queries.request import Request
from bettong.harness.search.bounds import PROFILES
from bettong.lineage.results import Guarantee
from bettong.lineage.search.loop import Budget


@click.command("check-sink", short_help="Is this sink effectively-once?")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option("--option", "options", multiple=True, metavar="K=V", help="For format:NAME.")
@query_options
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(["new-checkpoint"]),
    help="Ask this as well; reported apart.",
)
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    options: tuple[str, ...],
    endpoints: tuple[str, ...],
    expect: Guarantee,
    bounds: str,
    together: int | None,
    budget: str,
    first: bool,
    only: tuple[str, ...],
    real_kills: bool,
    one_at_a_time: bool,
    also: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    quiet: bool,
    progress_json: bool,
) -> None:
    """Is this sink effectively-once? Shows the smallest fault that proves it is not.

    TARGET is file.py:Object, module:Object or format:NAME. Exit codes: 0 the level holds, 1 it
    does not, 2 the target cannot be used, 3 nothing can be concluded.
    """
    request = Request(
        "",
        options=pairs(options, "--option"),
        endpoints=endpoints_of(endpoints),
        expect=expect,
        faults=together or PROFILES[bounds].together or 1,
        budget=Budget.parse(budget),
        first=first,
        only=only,
        real=real_kills,
        also=also,
        side_by_side=not one_at_a_time,
    )
    code = judge_targets(request, targets, check_one, unusable, out, as_json, quiet, progress_json)
    ctx.exit(code)
