"""``bettong protocol``."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import click

from bettong.harness import events
from bettong.harness.cli.output import Output
from bettong.harness.cli.protocol_loading import load_program
from bettong.harness.events import CounterexampleFound, Finished, Started
from bettong.harness.search.system import digest_of
from bettong.lineage.errors import UsageError
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.explorer import explore
from bettong.lineage.protocols.failure_spec import CRASH_MODELS, CrashModel, FailureSpec
from bettong.lineage.protocols.random_search import sample
from bettong.lineage.protocols.result import ProtocolReport
from bettong.lineage.results import Result, begin_answer
from bettong.lineage.search.loop import Budget, search
from bettong.lineage.user_code import files_in_use

_ROUNDS = click.IntRange(0, 10_000)
_FAULT = re.compile(r"[^\s(),]+\([^()]*\)")
LARGE = 20_000_000


def _random(text: str) -> int:
    found = re.match(r"random:(\d+)$", text)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"--faults {text}: write ldfi, or random:N with the number of schedules")
    return int(found[1])


@dataclass(frozen=True, slots=True)
class _Ask:
    exhaustive: bool
    find_all: bool
    faults: str
    schedule: str | None
    budget: Budget
    seed: int
    log: Path | None
    system: str


@click.command("protocol")
@click.argument(
    "program", nargs=-1, required=True, metavar="NAME|MODULE:CLASS|FILE.py:CLASS|FILE.ded..."
)
@click.option(
    "--eot", type=_ROUNDS, metavar="N", help="The last round. Default: the program's own."
)
@click.option(
    "--eff", type=_ROUNDS, metavar="N", help="Messages sent in rounds below it may be lost."
)
@click.option("--crashes", type=_ROUNDS, metavar="N", help="At most so many nodes crash.")
@click.option("--nodes", metavar="A,B,...", help="Names of the nodes.")
@click.option(
    "--crash-model",
    default="send-stop",
    show_default=True,
    metavar="|".join(CRASH_MODELS),
    help="What a crashed node still does.",
)
@click.option(
    "--down-for",
    type=_ROUNDS,
    metavar="N",
    default=1,
    show_default=True,
    help="Rounds that a restart takes.",
)
@click.option(
    "--duplicates",
    type=_ROUNDS,
    metavar="N",
    default=0,
    show_default=True,
    help="At most so many duplicates.",
)
@click.option(
    "--delays",
    type=_ROUNDS,
    metavar="N",
    default=0,
    show_default=True,
    help="At most so many delays.",
)
@click.option("--exhaustive", is_flag=True, help="Run every schedule within the bounds.")
@click.option("--find-all", is_flag=True, help="All minimal fault sets, not only the first.")
@click.option(
    "--faults",
    default="ldfi",
    show_default=True,
    metavar="ldfi|random:N",
    help="Lineage-driven search, or N random schedules.",
)
@click.option("--schedule", metavar='"FAULT ..."', help="Run this one schedule.")
@click.option("--budget", metavar="RUNS|5m", help="How many runs, or how long, at most.")
@click.option(
    "--seed", type=int, metavar="S", default=0, show_default=True, help="Of random schedules."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for result, reports and the log from which an interrupted search goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    program: tuple[str, ...],
    eot: int | None,
    eff: int | None,
    crashes: int | None,
    nodes: str | None,
    crash_model: CrashModel,
    down_for: int,
    duplicates: int,
    delays: int,
    exhaustive: bool,
    find_all: bool,
    faults: str,
    schedule: str | None,
    budget: str | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Test a round-based protocol under losses and crashes.

    Rounds are 1 to EOT; messages sent in rounds below EFF may be lost; at most so many nodes
    crash. The answer is a minimal set of faults that breaks the protocol, or that there is none.
    """
    if out is not None:
        begin_answer(out)
    names = tuple(n.strip() for n in nodes.split(",")) if nodes is not None else ()
    loaded = load_program(program, names)
    own = loaded.bounds
    spec = FailureSpec(
        loaded.nodes,
        own[0] if eot is None else eot,
        own[1] if eff is None else eff,
        own[2] if crashes is None else crashes,
        crash_model,
        down_for,
        duplicates,
        delays,
    )
    for name, most in (("duplicates", duplicates), ("delays", delays)):
        if most and spec.eff < 2:
            raise UsageError(
                f"--{name} {most}: only what is sent in rounds below EFF is met, and with EFF at "
                f"{spec.eff} that is nothing: give --eff 2 or more, or leave it out"
            )
    executor = RoundExecutor(loaded.program, spec)
    log = out / "search.jsonl" if out is not None else None
    ask = _Ask(
        exhaustive,
        find_all,
        faults,
        schedule,
        Budget.parse(budget),
        seed,
        log,
        digest_of({*loaded.files, *files_in_use()}),
    )
    with Output(as_json=as_json, quiet=quiet) as output:
        output(Started(loaded.program.name, "protocol"))
        result = _answer(executor, _command(program, spec), ask, output)
        if out is not None:
            result.write(out)
        for counterexample in result.counterexamples:
            output(CounterexampleFound(counterexample))
        output(Finished(result, out))
    click.get_current_context().exit(output.exit_code())


def _faults(text: str) -> frozenset[str]:
    """The faults that a schedule names; raises UsageError for any other word."""
    if rest := _FAULT.sub(" ", text).replace(",", " ").split():
        raise UsageError(
            f"--schedule: {rest[0]!r} is no fault: write faults such as O(a,b,1) or C(a,2)"
        )
    return frozenset(_FAULT.findall(text))


def _command(program: tuple[str, ...], spec: FailureSpec) -> list[str]:
    words = ["bettong", "protocol", *program, "--eot", str(spec.eot), "--eff", str(spec.eff)]
    words += ["--crashes", str(spec.crashes), "--nodes", ",".join(spec.nodes)]
    if spec.crash_model != "send-stop":
        words += ["--crash-model", spec.crash_model]
    for name in ("duplicates", "delays"):
        if getattr(spec, name):
            words += [f"--{name}", str(getattr(spec, name))]
    return words + (["--down-for", str(spec.down_for)] if spec.down_for != 1 else [])


def _answer(
    executor: RoundExecutor, command: list[str], ask: _Ask, on_event: events.Handler
) -> Result:
    report = ProtocolReport(executor, command)
    began = datetime.now(UTC)
    clock = monotonic()
    if sum((ask.exhaustive, ask.faults != "ldfi", ask.schedule is not None)) > 1:
        raise UsageError("choose one of --exhaustive, --faults random:N and --schedule")
    if ask.schedule is not None:
        return report.of_schedule(executor.run(_faults(ask.schedule)), began)
    progress = events.search_events(on_event)
    if ask.exhaustive:
        size = executor.spec.size()
        if size > LARGE and ask.budget == Budget():
            raise UsageError(
                f"the bounds allow {size:,} schedules: lower them, give a --budget, or leave "
                f"--exhaustive out"
            )
        budget = ask.budget
        found = explore(executor, runs=budget.runs, seconds=budget.seconds, on_event=progress)
        return report.of_exploration(found, began)
    if ask.faults != "ldfi":
        drawn = sample(executor, _random(ask.faults), ask.seed, on_event=progress)
        return report.of_sample(drawn, ask.seed, began, monotonic() - clock)
    findings = search(
        executor,
        executor.spec.bounds,
        budget=ask.budget,
        find_all=ask.find_all,
        log=ask.log,
        question=shlex.join(command),
        system=ask.system,
        fault_space=executor.spec.size(),
        on_event=progress,
    )
    return report.of_search(findings, ask.seed)
