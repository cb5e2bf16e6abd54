"""``bettong bench``."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bettong.harness import bench
from bettong.harness.names import one_of
from bettong.lineage.errors import UsageError


def names() -> tuple[str, ...]:
    """The measurements that there are."""
    modules = sorted(m.name for m in pkgutil.iter_modules(bench.__path__))
    return tuple(name.replace("_", "-") for name in modules if name not in _PARTS)


_PARTS = ("bytewax_peer", "errors", "peers", "session", "timing")
"""Modules that measurements share."""


@click.command("bench")
@click.argument("name")
@click.option("--full", is_flag=True, help="The size that the docs tell of; takes minutes.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="A size of your own.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(name: str, full: bool, events: int | None, as_json: bool) -> None:
    """Measure; figures are ratios to a peer or a plain way of doing the same.

    NAME is one of: check, engine, latency, ldfi, market-spread, price, sinks, spark-latency,
    state-size, steps, twins.
    """
    chosen = one_of(name, names(), "measurement")
    found = _measured(chosen, full, events)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    table = Table("figure", "value", "unit", "beside", "ratio", box=None)
    for key, told in found["figures"].items():
        ratio = told.get("ratio")
        shown = "" if ratio is None else f"{ratio:g}"
        table.add_row(key, f"{told['value']:g}", told["unit"], told.get("versus", ""), shown)
    Console(soft_wrap=True).print(table)


def _measured(name: str, full: bool, events: int | None) -> dict[str, Any]:
    module = importlib.import_module(f"bettong.harness.bench.{name.replace('-', '_')}")
    asked: dict[str, Any] = {"full": full, "events": events}
    sizes = {option: value for option, value in asked.items() if value}
    for option in sizes.keys() - inspect.signature(module.bench).parameters:
        raise UsageError(f"bench {name} has no such size: leave out --{option}")
    found: dict[str, Any] = module.bench(**sizes)
    return found
