"""``bettong bench``."""

from __future__ import annotations

import inspect
import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from bettong.harness.catalog import find
from bettong.lineage.errors import UsageError


@click.command("bench")
@click.argument("name")
@click.option("--full", is_flag=True, help="The size that the docs tell of; takes minutes.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="A size of your own.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(name: str, full: bool, events: int | None, as_json: bool) -> None:
    """Measure; figures are ratios to a peer or a plain way of doing the same.

    NAME is one of: check, engine, latency, ldfi, market-spread, price, sinks, spark-latency,
    state-size, steps, mutants.
    """
    found = _measured(name, full, events)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    table = Table("figure", "value", "unit", "beside", "ratio", box=None)
    for key, reported in found["figures"].items():
        ratio = reported.get("ratio")
        shown = "" if ratio is None else f"{ratio:g}"
        table.add_row(
            key, f"{reported['value']:g}", reported["unit"], reported.get("versus", ""), shown
        )
    Console(soft_wrap=True).print(table)


def _measured(name: str, full: bool, events: int | None) -> dict[str, Any]:
    bench = find(name, "bench").load()
    asked: dict[str, Any] = {"full": full, "events": events}
    sizes = {option: value for option, value in asked.items() if value}
    for option in sizes.keys() - inspect.signature(bench).parameters:
        raise UsageError(f"bench {name} has no such size: leave out --{option}")
    found: dict[str, Any] = bench(**sizes)
    return found
