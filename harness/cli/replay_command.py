"""``bettong replay``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bettong.harness.api import load_scenario, replay
from bettong.harness.backend import LocalBackend
from bettong.harness.cli.verdict import RunProgress, exit_code, tell
from bettong.harness.counterexample import CounterexampleFile


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for result and reports. Default: replay, beside the file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(file: Path, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Run the one fault schedule of a counterexample's FILE again."""
    found = CounterexampleFile.read(file)
    scenario = load_scenario(found.scenario)
    own = out or file.parent / "replay"
    backend = LocalBackend(workers=found.workers, runner=found.runner)
    with backend, RunProgress(quiet or as_json) as progress:
        result = replay(file, backend=backend, out=own, progress=progress.of(scenario.name))
    tell([(result, own)], as_json)
    sys.exit(exit_code([result]))
