"""``bettong run``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import click
from click.decorators import FC

from bettong.harness.backends.base import Runner
from bettong.harness.backends.choice import BackendChoice, Kind
from bettong.harness.cli.output import RunProgress, exit_code, notify
from bettong.harness.jobs import carry_out, plan_jobs
from bettong.harness.search.bounds import PROFILE_NAMES, SearchBounds
from bettong.harness.suites import Shard, SuiteRun, counted
from bettong.lineage.results import GUARANTEES, Guarantee


def _bound(option: str, what: str, least: int = 0) -> Callable[[FC], FC]:
    """An option that bounds a lineage-driven search, in place of what ``--bounds`` says of it."""
    return click.option(option, type=click.IntRange(least), metavar="N", help=f"ldfi: {what}")


@click.command("run")
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
@click.option(
    "--bounds",
    type=click.Choice(PROFILE_NAMES),
    help="ldfi: quick tries one fault at a time: a crash, a loss, a storage fault, a power cut, a "
    "pause. standard, the default, tries also two of different kinds together. thorough tries "
    "up to three, two of them alike, with repeated requests and partitions. The options below "
    "win; a count of faults without --bounds is the whole of it, with one crash and one loss "
    "unless they say otherwise.",
)
@_bound("--crashes", "crashes that may strike in one run.")
@_bound("--losses", "lost requests or answers in one run.")
@_bound("--batches", "faults strike in the first so many batches.", least=1)
@_bound(
    "--pauses",
    "drivers that stand still, are replaced, and go on beside their successors; servers that stand "
    "still until they are asked again.",
)
@_bound("--storage", "writes that a disk refuses, or that a power cut tears or loses.")
@_bound("--duplicates", "requests that are delivered twice.")
@_bound("--partitions", "nodes cut off from those that ask them, for two tries.")
@_bound("--together", "faults of all kinds in one run.", least=1)
@click.option("--find-all", is_flag=True, help="ldfi: all minimal counterexamples.")
@click.option(
    "--exhaustive",
    type=click.Choice(["singles", "pairs"]),
    help="ldfi: first run every single fault at every step, or every pair, and compare.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 2),
    default=0,
    show_default=True,
    help="Spark workers of a standalone cluster; 0: all in the driver.",
)
@click.option(
    "--backend",
    "kind",
    type=click.Choice(get_args(Kind)),
    default="local",
    show_default=True,
    help="Nodes are processes of this machine, or containers of its engine.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Spark master of yours, as spark://HOST:7077 or local[4]. Faults strike our nodes alone.",
)
@click.option(
    "--runner",
    type=click.Choice(get_args(Runner)),
    default="spark",
    show_default=True,
    help="in-process: the same batches in a driver without Spark.",
)
@click.option(
    "--input",
    "input_file",
    type=click.Path(path_type=Path),
    help="Messages, one a line, in place of the scenario's; of several streams a folder with a "
    "file for each.",
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
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts of the runs.")
def command(
    names: tuple[str, ...],
    faults: str,
    bounds: str | None,
    crashes: int | None,
    losses: int | None,
    batches: int | None,
    pauses: int | None,
    storage: int | None,
    duplicates: int | None,
    partitions: int | None,
    together: int | None,
    find_all: bool,
    exhaustive: Literal["singles", "pairs"] | None,
    workers: int,
    kind: Kind,
    master: str | None,
    runner: Runner,
    input_file: Path | None,
    budget: str | None,
    seed: int,
    out: Path | None,
    expect: Guarantee,
    as_json: bool,
    quiet: bool,
    shard: str | None,
) -> None:
    """Run scenarios and suites, each first without faults, then under faults, and judge their
    outputs.

    NAME is a scenario or a suite (see bettong list), or a suite of bettong.toml.
    """
    jobs = plan_jobs(
        names,
        SuiteRun(
            "",
            faults,
            expect,
            budget,
            seed,
            workers,
            crashes,
            losses,
            batches,
            str(input_file) if input_file else None,
            pauses,
            storage,
            duplicates,
            partitions,
            together,
            bounds,
        ),
        SearchBounds(find_all=find_all, exhaustive=exhaustive or ""),
        out,
        BackendChoice(kind, runner, master),
    )
    part = Shard.parse(shard) if shard else Shard()
    with RunProgress(quiet or as_json) as progress:
        results = list(carry_out(jobs, part, progress.of))
    notify(results, as_json)
    click.get_current_context().exit(exit_code(counted([result for result, _ in results])))
