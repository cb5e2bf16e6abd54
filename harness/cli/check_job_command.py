"""``bettong check-job``: is this whole streaming job effectively-once?"""

from __future__ import annotations

from pathlib import Path

import click

from bettong.harness.cli.query_options import judge_targets, pairs, query_options
from bettong.harness.queries.job.check import check_one_job, unusable_job
from bettong.harness.queries.request import Request
from bettong.harness.search.bounds import PROFILES
from bettong.lineage.results import Guarantee
from bettong.lineage.search.loop import Budget


@click.command("check-job")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@query_options
@click.option(
    "--faults",
    type=click.Choice(["ldfi", "none"]),
    default="ldfi",
    show_default=True,
    help="none: only say what of the output depends on how batches are cut.",
)
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    endpoints: tuple[str, ...],
    expect: Guarantee,
    bounds: str,
    together: int | None,
    budget: str,
    first: bool,
    only: tuple[str, ...],
    real_kills: bool,
    faults: str,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Is this streaming job effectively-once, with its own source, state and sink? Shows the
    smallest fault that proves it is not.

    TARGET is file.py:Object or module:Object, a bettong.harness.Job. Exit codes: 0 the level
    holds, 1 it does not, 2 the target cannot be used, 3 nothing can be concluded.
    """
    request = Request(
        "",
        endpoints=pairs(endpoints, "--endpoint"),
        expect=expect,
        faults=together or PROFILES[bounds].together or 1,
        budget=Budget.parse(budget),
        first=first,
        only=only,
        real=real_kills,
        contract="job",
        clean_only=faults == "none",
    )
    ctx.exit(judge_targets(request, targets, check_one_job, unusable_job, out, as_json, quiet))
