"""``bettong run``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from bettong.harness.api import load_scenario, run_scenario
from bettong.harness.backend import LocalBackend
from bettong.harness.cli.verdict import RunProgress, exit_code, tell
from bettong.harness.fault_plan import parse_plan
from bettong.harness.search.ldfi import Reach
from bettong.lineage.errors import UsageError
from bettong.lineage.loop import Budget
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
    metavar="none|ldfi|each-step|random:N|FILE",
    help="Which faults: none, those that the lineage suggests, every single one at each step of "
    "a batch, N random schedules, or those of a schedule's file.",
)
@click.option(
    "--crashes",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="ldfi: crashes that may strike in one run.",
)
@click.option(
    "--losses",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="ldfi: lost requests or answers in one run.",
)
@click.option(
    "--batches",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="ldfi: faults strike in the first so many batches.",
)
@click.option("--find-all", is_flag=True, help="ldfi: all minimal counterexamples.")
@click.option(
    "--exhaustive",
    is_flag=True,
    help="ldfi: run every single fault at every step as well, and compare.",
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
    crashes: int,
    losses: int,
    batches: int,
    find_all: bool,
    exhaustive: bool,
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
    reach = Reach(crashes, losses, batches, find_all, exhaustive)
    plan = reach if faults == "ldfi" else parse_plan(faults, seed, backend.topology)
    for scenario in scenarios:
        scenario.messages(input_file)
    results = []
    with backend, RunProgress(quiet or as_json) as progress:
        for scenario in scenarios:
            own = (out or Path("bettong-out")) / scenario.name
            own = out if out is not None and len(scenarios) == 1 else own
            result = run_scenario(
                scenario,
                plan,
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
