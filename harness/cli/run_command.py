"""``bettong run``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backend import LocalBackend
from bettong.harness.campaign import Budget
from bettong.harness.cli.verdict import RunProgress, exit_code, tell
from bettong.harness.fault_plan import parse_plan
from bettong.lineage.errors import UsageError
from bettong.lineage.results import GUARANTEES, Guarantee

_BUDGET = re.compile(r"(\d+)(s|m|h)?$")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def parse_budget(text: str | None) -> Budget:
    """``200`` is so many runs, ``90s``, ``5m``, ``1h`` so much time; raises UsageError."""
    if text is None:
        return Budget()
    found = _BUDGET.match(text)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"--budget {text}: write a number of runs, or a time such as 90s or 5m")
    number, unit = int(found[1]), found[2]
    return Budget(runs=number) if unit is None else Budget(seconds=number * _SECONDS[unit])


@click.command("run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--faults",
    default="none",
    show_default=True,
    metavar="none|each-step|random:N|FILE",
    help="Which faults: none, every single one at each step of a batch, N random schedules, or "
    "those of a schedule's file.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 2),
    default=0,
    show_default=True,
    help="Spark workers of a standalone cluster; 0: all in the driver.",
)
@click.option(
    "--input",
    "input_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Messages, one a line, in place of the scenario's.",
)
@click.option("--budget", metavar="RUNS|5m", help="How many runs, or how long, at most.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random schedules.")
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
def command(
    names: tuple[str, ...],
    faults: str,
    workers: int,
    input_file: Path | None,
    budget: str | None,
    seed: int,
    out: Path | None,
    expect: Guarantee,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run scenarios, first without faults, then under faults, and judge their outputs."""
    scenarios = [load_scenario(name) for name in names]
    allowed = parse_budget(budget)
    backend = LocalBackend(workers=workers)
    parse_plan(faults, seed, backend.topology)
    for scenario in scenarios:
        scenario.messages(input_file)
    results = []
    with backend, RunProgress(quiet or as_json) as progress:
        for scenario in scenarios:
            own = (out or Path("bettong-out")) / scenario.name
            own = out if out is not None and len(scenarios) == 1 else own
            result = run_scenario(
                scenario,
                faults,
                backend=backend,
                out=own,
                input_file=input_file,
                seed=seed,
                budget=allowed,
                expected=expect,
                progress=progress.of(scenario.name),
            )
            results.append((result, own))
    tell(results, as_json)
    sys.exit(exit_code([result for result, _ in results]))
