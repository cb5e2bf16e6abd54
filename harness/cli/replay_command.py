"""``bettong replay``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bettong.harness.api import load_scenario, replay
from bettong.harness.cli.output import Output
from bettong.harness.cli.query_options import endpoints_of, pairs
from bettong.harness.queries import counterexample
from bettong.harness.queries.check import check_one
from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.run.environment import spark_environments
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.lineage.errors import UsageError
from bettong.lineage.results import begin_answer


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
    own = out or file.parent / "replay"
    begin_answer(own)
    with Output(as_json=as_json, quiet=quiet) as output:
        if counterexample.is_one(file):
            given = pairs(options, "--option"), endpoints_of(endpoints)
            request = replace(counterexample.read(file, *given), out=own, replayed=file)
            check = check_one_job if request.contract == "job" else check_one
            with spark_environments(output) as environments:
                check(request, environments, output)
        elif options or endpoints:
            raise UsageError(
                f"{file} is of a scenario: --option and --endpoint are for sinks and jobs"
            )
        else:
            _replay_scenario(file, own, output)
    click.get_current_context().exit(output.exit_code())


def _replay_scenario(file: Path, out: Path, output: Output) -> None:
    found = CounterexampleFile.read(file)
    scenario = load_scenario(found.scenario)
    with found.where.backend(found.workers, "kafka" in scenario.servers) as backend:
        replay(file, backend=backend, out=out, on_event=output)
