"""``bettong check-job``: is this whole streaming job effectively-once?"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from bettong.harness.cli.query_options import (
    endpoints_of,
    judge_targets,
    pairs,
    query_options,
)
from bettong.harness.queries.job.check import check_one_job, unusable_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.script import PYTHON, STARTERS, SUBMIT, Script
from bettong.harness.search.bounds import PROFILES
from bettong.harness.spark.session import submit_settings
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Guarantee
from bettong.lineage.search.loop import Budget


@click.command("check-job", short_help="Is this streaming job effectively-once?")
@click.argument("targets", metavar="[TARGET...]", nargs=-1)
@click.option(
    "--script",
    type=click.Path(),
    help="Judge this Python script as it is, in place of a TARGET.",
)
@click.option(
    "--set",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="An environment variable of the script; {work} in it is an empty folder of each run, "
    "proxy:NAME the address of a server.",
)
@click.option(
    "--args",
    "arguments",
    metavar="TEXT",
    help="What follows the script on its command line, as in a shell; {work} and proxy:NAME as in "
    "--set.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE@topic:NAME|FILE@dir:PATH",
    help="The lines of a file are fed to a topic, or as files of a folder below {work}.",
)
@click.option(
    "--read", "reader", metavar="FILE.py:FUNCTION", help="Returns the rows of its output."
)
@click.option(
    "--with",
    "starter",
    metavar="TEXT",
    default=PYTHON,
    show_default=True,
    help="What starts the script: python, or spark-submit with its options, such as "
    "'spark-submit --packages … --conf …'.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    default=4,
    show_default=True,
    help="In so many steps, each a micro-batch, the script's input is fed.",
)
@query_options
@click.option(
    "--faults",
    type=click.Choice(["ldfi", "none"]),
    default="ldfi",
    show_default=True,
    help="none: only say what of the output depends on how batches are cut.",
)
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    script: str | None,
    variables: tuple[str, ...],
    arguments: str | None,
    inputs: tuple[str, ...],
    reader: str | None,
    starter: str,
    steps: int,
    endpoints: tuple[str, ...],
    expect: Guarantee,
    bounds: str,
    together: int | None,
    budget: str,
    first: bool,
    only: tuple[str, ...],
    real_kills: bool,
    one_at_a_time: bool,
    faults: str,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    progress_json: bool,
) -> None:
    """Is this streaming job effectively-once, with its own source, state and sink? Shows the
    smallest fault that proves it is not.

    TARGET is file.py:Object or module:Object, a bettong.harness.Job; or give --script. Exit codes:
    0 the level holds, 1 it does not, 2 the target cannot be used, 3 nothing can be concluded.
    """
    asked = None
    if script is not None:
        if targets:
            raise UsageError(f"give --script or {targets[0]}, not both")
        named = pairs(variables, "--set")
        words = _words(arguments or "")
        _expect_starter(starter)
        asked = Script(script, named, inputs, reader or "", starter, steps, words)
        targets = (asked.target,)
    elif not targets:
        raise UsageError("give a TARGET such as myjob.py:MyJob, or --script FILE")
    elif variables or arguments or inputs or reader:
        raise UsageError("--set, --args, --input and --read are for --script")
    request = Request(
        "",
        endpoints=endpoints_of(endpoints),
        expect=expect,
        faults=together or PROFILES[bounds].together or 1,
        budget=Budget.parse(budget),
        first=first,
        only=only,
        real=real_kills,
        side_by_side=not one_at_a_time,
        contract="job",
        clean_only=faults == "none",
        script=asked,
    )
    code = judge_targets(
        request, targets, check_one_job, unusable_job, out, as_json, quiet, progress_json
    )
    ctx.exit(code)


def _expect_starter(text: str) -> None:
    """Raises UsageError for what starts no script."""
    name, _, options = text.partition(" ")
    if name not in STARTERS or (options and name != SUBMIT):
        raise UsageError(f"--with {text!r}: write {PYTHON}, or {SUBMIT} with its options")
    submit_settings(options, "--with")


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as e:
        raise UsageError(f"--args {text!r}: {e}: write it as in a shell") from None
