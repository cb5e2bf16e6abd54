"""The options that say where scenarios run, gathered into one object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_args

import click

from bettong.harness.backends.base import Runner
from bettong.harness.backends.choice import BackendChoice, Kind

Command = Callable[..., Any]


def backend_options(command: Command) -> Command:
    """Adds the options; the command gets them as ``backend``, a :class:`BackendChoice`."""

    @functools.wraps(command)
    def gathered(kind: Kind, master: str | None, runner: Runner, **given: Any) -> Any:
        return command(backend=BackendChoice(kind, runner, master), **given)

    options = [
        click.option(
            "--backend",
            "kind",
            type=click.Choice(get_args(Kind)),
            default="local",
            show_default=True,
            help="Nodes are processes of this machine, or containers of its engine.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Spark master of yours, as spark://HOST:7077 or local[4]. Faults hit our nodes "
            "alone.",
        ),
        click.option(
            "--runner",
            type=click.Choice(get_args(Runner)),
            default="spark",
            show_default=True,
            help="in-process: the same batches in a driver without Spark.",
        ),
    ]
    for option in reversed(options):
        gathered = option(gathered)
    return gathered
