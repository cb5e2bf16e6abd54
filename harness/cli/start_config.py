"""The file of ``bettong start --config``.

::

    application = "app:totals"
    checkpoint = "/var/lib/totals"
    wait = "20ms"

    [source]
    lines = "127.0.0.1:4000"

    [sink]
    totals = "127.0.0.1:4001"

It has the command's options under their names; what the command line says wins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_text
from bettong.lineage.nearest import one_of


def read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Make what the file says the options' defaults; raises UsageError."""
    if path is None:
        return
    try:
        value = tomllib.loads(read_text(path, "the configuration"))
    except (ValueError, RecursionError) as e:
        reason = "it is nested too deep" if isinstance(e, RecursionError) else e
        raise UsageError(f"cannot read {path}: {reason}") from e
    known = {_written(p): p for p in ctx.command.params if _written(p) != "config"}
    found: dict[str, Any] = {}
    for name, given in value.items():
        parameter = known[one_of(name, tuple(known), f"{path}: option")]
        assert parameter.name is not None
        found[parameter.name] = _value(parameter, given, f"{path}: {name}")
    ctx.default_map = found


def _written(parameter: click.Parameter) -> str:
    """The name of an option without its dashes, or of the argument."""
    return parameter.opts[0].lstrip("-")


def _value(parameter: click.Parameter, given: Any, where: str) -> Any:
    if getattr(parameter, "multiple", False):
        if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
            raise UsageError(f'{where}: a table is wanted, such as [source] with lines = "WHERE"')
        return [f"{name}={where}" for name, where in given.items()]
    if getattr(parameter, "is_flag", False) != isinstance(given, bool):
        raise UsageError(f"{where}: {given!r} is not what --{_written(parameter)} takes")
    if not isinstance(given, bool | int | str):
        raise UsageError(f"{where}: a number or a text is wanted, not {given!r}")
    return given
