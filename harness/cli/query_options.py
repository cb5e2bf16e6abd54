"""What check-sink and check-job have in common: options, and the targets of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import click

from bettong.engine.address import Address
from bettong.harness.cli.output import Output
from bettong.harness.cli.verdict_text import Line, table_of
from bettong.harness.events import Handler
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments
from bettong.harness.search.bounds import DEFAULT, PROFILE_NAMES
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.results import GUARANTEES, Result, begin_answer
from bettong.lineage.secrets import masked
from bettong.reports import write_index

_OUT = Path("bettong-out")
F = TypeVar("F", bound=Callable[..., object])
Check = Callable[[Request, SparkEnvironments, Handler], Result]
Unusable = Callable[[Request, BettongError, Handler], Result]


_OPTIONS = (
    click.option(
        "--endpoint",
        "endpoints",
        multiple=True,
        metavar="NAME=HOST:PORT",
        help="Where a server that it talks to really is.",
    ),
    click.option(
        "--expect",
        type=click.Choice(GUARANTEES),
        default="effectively-once",
        show_default=True,
        help="The level that is asked for; less exits 1.",
    ),
    click.option(
        "--bounds",
        type=click.Choice(PROFILE_NAMES),
        default=DEFAULT,
        show_default=True,
        help="quick: one fault at a time; standard: two; thorough: three.",
    ),
    click.option(
        "--together",
        type=click.IntRange(1, 3),
        metavar="N",
        help="How many faults may happen together, in place of what --bounds says.",
    ),
    click.option(
        "--budget",
        default="15m",
        show_default=True,
        metavar="RUNS|15m",
        help="How many runs, or how long, the search may take at most.",
    ),
    click.option("--first", is_flag=True, help="End with the first counterexample."),
    click.option("--only", multiple=True, metavar="FAULT", help="Run this one fault set (repeat)."),
    click.option("--real-kills", is_flag=True, help="Make every crash a SIGKILL: slow."),
    click.option(
        "--one-at-a-time",
        is_flag=True,
        help="Make no two runs at the same time, also where they seem to share nothing.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder for result, reports and counterexamples. Default: bettong-out/TARGET.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the result and nothing else."),
    click.option("--quiet", is_flag=True, help="No progress."),
    click.option(
        "--progress-json",
        is_flag=True,
        help="Print the progress on standard error, a line of JSON for each step of it.",
    ),
)


def query_options(command: F) -> F:
    """The options of a command that judges a query."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def pairs(given: tuple[str, ...], option: str) -> Mapping[str, str]:
    """``NAME=VALUE`` of an option that may be repeated; raises UsageError."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {masked(text)!r}: write NAME=VALUE")
        found[name] = value
    return found


def endpoints_of(given: tuple[str, ...]) -> Mapping[str, str]:
    """The addresses that ``--endpoint`` gives, by name; raises UsageError."""
    found = pairs(given, "--endpoint")
    for name, text in found.items():
        try:
            port = Address.parse(text).port
        except UsageError as e:
            raise UsageError(f"--endpoint {name}: {e}") from e
        if port == 0:
            raise UsageError(f"--endpoint {name}: nothing is reached at port 0")
    return found


def judge_targets(
    request: Request,
    targets: Sequence[str],
    check: Check,
    unusable: Unusable,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    progress_json: bool,
) -> int:
    """Judge each target with drivers that all share; write and print the results, return the exit
    code."""
    alone = len(targets) == 1
    folders = {targets[0]: out} if out and alone else folders_of(targets, out or _OUT)
    for folder in {*folders.values(), *(() if alone else (out or _OUT,))}:
        begin_answer(folder)
    links = []
    shown = Output(as_json=as_json, quiet=quiet, progress_json=progress_json)
    with shown as output, spark_environments(output) as environments:
        for target in targets:
            folder = folders[target]
            asked = replace(request, target=target, out=folder)
            try:
                result = check(asked, environments, output)
            except BettongError as e:
                if alone:
                    raise
                result = unusable(asked, e, output)
            links.append((result, f"{quote(folder.name)}/report.html"))
        if not alone:
            write_index(links, out or _OUT)
            output.print([Line(""), *table_of(list(zip(targets, output.results, strict=True)))])
    return output.exit_code()


def folders_of(targets: Iterable[str], base: Path) -> dict[str, Path]:
    """A folder for each target; where two of them come to the same name the later one has a
    number."""
    found: dict[str, Path] = {}
    for target in dict.fromkeys(targets):
        folder, number = base / _folder(target), 1
        while folder in found.values():
            number += 1
            folder = base / f"{_folder(target)}-{number}"
        found[target] = folder
    return found


def _folder(target: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in target)
