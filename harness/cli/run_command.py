"""``bettong run``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bettong.harness.backends.choice import BackendChoice
from bettong.harness.cli.backend_options import backend_options
from bettong.harness.cli.bounds_options import bounds_options
from bettong.harness.cli.output import Output
from bettong.harness.cli.printing import complain
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.suites.jobs import OUT, carry_out, plan_jobs
from bettong.harness.suites.suite import Shard, SuiteRun, counted
from bettong.lineage.results import GUARANTEES, begin_answer


@click.command("run", short_help="Run scenarios and suites, without faults and under them.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--faults",
    default="none",
    show_default=True,
    metavar="none|ldfi|each-step|random:N|FILE|DIR",
    help="Which faults: none, those that the lineage suggests, every single one at each step of "
    "the first two batches, N random schedules, or those of a schedule's file or of a "
    "folder of them.",
)
@bounds_options
@click.option(
    "--workers",
    type=click.IntRange(0, 2),
    metavar="N",
    default=0,
    show_default=True,
    help="Spark workers of a standalone cluster; 0: all in the driver.",
)
@backend_options
@click.option(
    "--input",
    "input_file",
    type=click.Path(path_type=Path),
    help="Messages, one a line, in place of the scenario's; of several streams a folder with a "
    "file for each.",
)
@click.option("--budget", metavar="RUNS|5m", help="How many runs, or how long, at most.")
@click.option(
    "--seed", type=int, metavar="S", default=0, show_default=True, help="Of random schedules."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for result and reports. Default: bettong-out/NAME.",
)
@click.option(
    "--expect",
    type=click.Choice(GUARANTEES),
    default="effectively-once",
    show_default=True,
    help="The level asked for.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts of the runs.")
def command(
    *,
    names: tuple[str, ...],
    bounds: Mapping[str, Any],
    search: SearchBounds,
    backend: BackendChoice,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    shard: str | None,
    input_file: Path | None,
    **options: Any,
) -> None:
    """Run scenarios and suites, each first without faults, then under faults, and judge their
    outputs.

    NAME is a scenario or a suite (see bettong list), or a suite of bettong.toml.
    """
    part = Shard.parse(shard) if shard else Shard()
    if part.of == 1:  # other shards may be at work in these folders
        for folder in (out, *((out or OUT) / name for name in names)):
            if folder is not None:
                begin_answer(folder)
    run = SuiteRun("", input=str(input_file) if input_file else None, **bounds, **options)
    jobs = plan_jobs(names, run, search, out, backend)
    with Output(as_json=as_json, quiet=quiet) as output:
        carry_out(jobs, part, output)
        if not output.results:
            complain(
                f"--shard {shard}: there are fewer pieces of work than shards, and none for it"
            )
    click.get_current_context().exit(output.exit_code(counted))
