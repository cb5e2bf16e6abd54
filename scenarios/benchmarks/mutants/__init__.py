"""How many honest mistakes the search finds: mutants of the engine and of the right sinks, each
searched within the standard bounds until a fault shows it.

A mutant that fails without a fault does not count: any test finds it. Mutants are drawn evenly over
the operators, of those that some scenario runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from bettong.engine.sinks.kafka_client import kafka
from bettong.harness.api import load_scenario
from bettong.harness.suites.suite import Shard
from bettong.lineage.results import environment
from bettong.scenarios.benchmarks.mutants import page, population
from bettong.scenarios.benchmarks.mutants.executed import executed
from bettong.scenarios.benchmarks.mutants.score import Score, scores
from bettong.scenarios.benchmarks.mutants.searching import LOG, Bench, Judged
from bettong.scenarios.mutants.shipped import MUTANTS

SCENARIOS = (
    "counting",
    "counting_to_files",
    "counting_to_arrow",
    "counting_rolling",
    "merged_rolling",
    "word_count",
    "doubling",
    "counting_on_credit",
    "counting_repartitioned",
    "counting_repartitioned_to_files",
    "counting_changed",
    "counting_merging",
    "counting_ahead",
    "counting_merging_beside",
    "counting_merging_apart",
    "forgetting_merging",
    "forgetting_merging_apart",
    "counting_collided",
    "counting_on_arrays",
    "switches_on_arrays",
    "counting_between_folders",
    "counting_shared_folder",
    "counting_too_early",
    "visits",
    "readings",
    "live_trickle",
    "alerts",
    "counting_in_parts",
    "counting_renamed",
    "counting_rescaled",
    "counting_merging_rescaled",
    "counting_full",
    "accounts",
    "statements",
    "live_stall",
    "large_messages",
    "counting_into_kafka",
)
"""In which mistakes are searched, in this order: small ones, which together run most of the engine.
Those that differ the most come first, since the later ones begin later."""

RECORDED_RUNS = 32
BOUNDS = "standard"
FEW = 20


def bench(
    full: bool = False,
    only: str | None = None,
    operator: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    shard: str = "1/1",
    seconds: float = 180.0,
    out: Path = Path("bettong-out/mutants"),
) -> dict[str, object]:
    """Search mutants and count.

    Args:
        full: every mutant, the sinks' too, in place of a sample of 20 of the engine's.
        only: a folder or module to be mutated, such as ``engine/storage`` or ``scenarios/sinks``.
        operator: only mistakes of this kind, such as ``delete durable call``.
        sample: how many are drawn.
        seed: of the drawing.
        shard: ``I/N``: the I-th of N parts of what is drawn.
        seconds: that a mutant may take.
        out: folder for the log, by which a bench that was interrupted goes on, the recorded runs
            of the scenarios, ``mutants.md`` and ``mutants.html``.

    Raises:
        UsageError: there is nothing to be mutated, or a client that a scenario needs is missing.
        WrongResultError: a scenario cannot be run.
    """
    part = Shard.parse(shard)
    if any("kafka" in load_scenario(name).servers for name in SCENARIOS):
        kafka()  # who lacks its client is told now, not when all else has been recorded
    known = population.equivalents()
    mutants = [
        m
        for m in population.population(only or (None if full else population.ENGINE))
        if not population.equivalent(m, known)
    ]
    if operator:
        mutants = population.of_operator(mutants, operator)
    parallel = min(2, os.cpu_count() or 1)
    recorded = executed(SCENARIOS, out / "executed", RECORDED_RUNS, parallel)
    first = tuple(dict.fromkeys(mutant.shown_by().ids for mutant in MUTANTS))
    work = Bench(out, recorded, BOUNDS, seconds, parallel, first)
    run = [mutant for mutant in mutants if work.is_run(mutant)]
    drawn = population.draw(run, None if full else sample or FEW, seed)
    mine = drawn[part.index - 1 :: part.of]
    judged = list(work.judge(mine, _say))
    modules, whole = scores(mutants, run, judged)
    (out / "mutants.md").write_text(page.markdown(modules, whole), "utf-8")
    page.write(out / "mutants.html", modules, whole)
    return {
        "name": "mutants",
        "figures": _figures(modules, whole),
        "unfound": {one.mutant.id: page.end(one) for one in page.unfound(whole)},
        "log": str(out / LOG),
        "environment": environment(),
    }


def _say(one: Judged) -> None:
    finding = one.finding
    click.echo(
        f"{finding.status:20} {finding.runs:4} runs {finding.seconds:6.1f} s  {one.mutant.id}",
        err=True,
    )


def _figures(modules: list[Score], whole: Score) -> dict[str, dict[str, object]]:
    figures: dict[str, dict[str, object]] = {}
    for score in (*modules, whole):
        if score.ratio is not None:
            figures[f"killed, {score.module}"] = {
                "value": score.killed,
                "unit": "mutants",
                "versus": f"that count: {score.counted}",
                "ratio": score.ratio,
            }
    ends = {
        "survived": len(whole.of("survived")),
        "aborted": len(whole.of("aborted")),
        "fail without a fault": len(whole.of("fails without a fault")),
        "never run": whole.never_run,
    }
    figures |= {name: {"value": n, "unit": "mutants"} for name, n in ends.items()}
    for name, value, unit in (
        ("runs to kill, mean", whole.runs_to_kill, "runs"),
        ("time to kill, mean", whole.seconds_to_kill, "s"),
    ):
        if value is not None:
            figures[name] = {"value": value, "unit": unit}
    return figures
