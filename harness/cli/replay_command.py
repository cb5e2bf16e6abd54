"""``bettong replay``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bettong.harness.api import load_scenario, replay
from bettong.harness.cli.output import RunProgress, exit_code, notify
from bettong.harness.cli.query_options import notify as notify_queries
from bettong.harness.cli.query_options import pairs, write
from bettong.harness.queries import counterexample
from bettong.harness.queries.check import check_one
from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.run.environment import spark_environments
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.lineage.errors import UsageError


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for result and reports. Default: replay, beside the file.",
)
@click.option(
    "--option", "options", multiple=True, metavar="K=V", help="A sink's option, over the file's."
)
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="Where a sink's server is, over what the file says.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    file: Path,
    out: Path | None,
    options: tuple[str, ...],
    endpoints: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the one fault schedule of a counterexample's FILE again."""
    if counterexample.is_one(file):
        code = _replay_query(file, out or file.parent / "replay", options, endpoints, as_json)
        click.get_current_context().exit(code)
    if options or endpoints:
        raise UsageError(f"{file} is of a scenario: --option and --endpoint are for sinks and jobs")
    found = CounterexampleFile.read(file)
    scenario = load_scenario(found.scenario)
    own = out or file.parent / "replay"
    backend = found.where.backend(found.workers, "kafka" in scenario.servers)
    with backend, RunProgress(quiet or as_json) as progress:
        result = replay(file, backend=backend, out=own, progress=progress.of(scenario.name))
    notify([(result, own)], as_json)
    click.get_current_context().exit(exit_code([result]))


def _replay_query(
    file: Path, out: Path, options: tuple[str, ...], endpoints: tuple[str, ...], as_json: bool
) -> int:
    given = pairs(options, "--option"), pairs(endpoints, "--endpoint")
    request = replace(counterexample.read(file, *given), out=out, replayed=file)
    with spark_environments(lambda line: None) as arena_for:
        check = check_one_job if request.contract == "job" else check_one
        result = check(request, arena_for, lambda line: None)
    write(result, out, as_json)
    notify_queries([result], as_json)
    return exit_code([result])
