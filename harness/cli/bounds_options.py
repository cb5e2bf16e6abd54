"""The options that bound a lineage-driven search, gathered from a command's arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from bettong.harness.search.bounds import PROFILE_NAMES, SearchBounds

Command = Callable[..., Any]

_COUNTS = (
    ("crashes", 0, "crashes that may happen in one run."),
    ("losses", 0, "lost requests or answers in one run."),
    (
        "batches",
        1,
        "faults fire in the first so many batches (default: as the scenario says, mostly two).",
    ),
    (
        "pauses",
        0,
        "drivers that stand still, are replaced, and go on beside their successors; servers that "
        "stand still until they are asked again; answers that are lost without a sign.",
    ),
    (
        "storage",
        0,
        "writes that a disk refuses, a power cut tears or loses, or a crash comes amid.",
    ),
    ("duplicates", 0, "requests that are delivered twice."),
    ("partitions", 0, "nodes cut off from those that ask them, for two tries."),
    ("moments", 0, "waits of live batches that end one moment later."),
    ("together", 1, "faults of all kinds in one run."),
)
_PROFILE = (
    "ldfi: quick tries one fault at a time: a crash, a loss, a storage fault, a power cut, a "
    "crash amid a write, a pause or silence, a repeated request, a partition. standard, the "
    "default, tries also a crash and a loss together, and a crash of a server and a write that its "
    "disk has refused. thorough tries up to three of any kinds, two of them alike. The options "
    "below win; a count of faults without --bounds is the whole of it, with one crash and one loss "
    "unless they say otherwise."
)


def bounds_options(command: Command) -> Command:
    """Adds the options.

    The command gets the profile and the counts as ``bounds``, by the names that
    :class:`~bettong.harness.suites.suite.SuiteRun` has for them, and how to search as ``search``.
    """

    @functools.wraps(command)
    def gathered(*, bounds: str | None, find_all: bool, exhaustive: Any, **given: Any) -> Any:
        counts = {name: given.pop(name) for name, _, _ in _COUNTS}
        search = SearchBounds(find_all=find_all, exhaustive=exhaustive or "")
        return command(bounds={"bounds": bounds, **counts}, search=search, **given)

    options = [click.option("--bounds", type=click.Choice(PROFILE_NAMES), help=_PROFILE)]
    options += [
        click.option(f"--{name}", type=click.IntRange(least), metavar="N", help=f"ldfi: {what}")
        for name, least, what in _COUNTS
    ]
    options += [
        click.option("--find-all", is_flag=True, help="ldfi: all minimal counterexamples."),
        click.option(
            "--exhaustive",
            type=click.Choice(["singles", "pairs"]),
            help="ldfi: first run every single fault at every step, or every pair, and compare.",
        ),
    ]
    for option in reversed(options):
        gathered = option(gathered)
    return gathered
