"""``bettong bench``."""

from __future__ import annotations

import importlib
import json
import pkgutil

import click
from rich.console import Console
from rich.table import Table

from bettong.harness import bench
from bettong.harness.names import one_of


def names() -> tuple[str, ...]:
    """The measurements that there are."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if m.name[0] != "_"))


@click.command("bench")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(name: str, as_json: bool) -> None:
    """Measure; figures are ratios to a peer or a plain way of doing the same.

    NAME is one of: check, engine, ldfi and what else is there; a wrong one lists them.
    """
    chosen = one_of(name, names(), "measurement")
    found = importlib.import_module(f"bettong.harness.bench.{chosen}").bench()
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    table = Table("figure", "value", "unit", "beside", "ratio", box=None)
    for key, told in found["figures"].items():
        ratio = told.get("ratio")
        shown = "" if ratio is None else f"{ratio:g}"
        table.add_row(key, f"{told['value']:g}", told["unit"], told.get("versus", ""), shown)
    Console(soft_wrap=True).print(table)
