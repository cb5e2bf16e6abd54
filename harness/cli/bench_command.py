"""``bettong bench``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from bettong.harness.catalog import find
from bettong.harness.cli.console import ToReader
from bettong.harness.cli.printing import cell
from bettong.lineage.errors import UsageError


@click.command("bench", short_help="Measure beside a peer or a plain way of doing the same.")
@click.argument("name")
@click.option("--full", is_flag=True, help="The size that the docs report; takes minutes.")
@click.option("--realistic", is_flag=True, help="sinks: those that people publish.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="A size of your own.")
@click.option("--only", metavar="PATH", help="mutants: of this folder or module; sinks: this one.")
@click.option("--operator", metavar="NAME", help="mutants: only mistakes of this kind.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="mutants: so many are drawn.")
@click.option("--seed", type=int, metavar="S", help="mutants: of the drawing; 0 if not given.")
@click.option("--shard", metavar="I/N", help="mutants: only the I-th of N parts of them.")
@click.option(
    "--seconds", type=click.FloatRange(1), metavar="S", help="mutants: that each may take; 180."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="mutants: folder for the log, by which a bench goes on, for the table and the survivors. "
    "Default: bettong-out/mutants.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(name: str, as_json: bool, **options: Any) -> None:
    """Measure; figures are ratios to a peer or a plain way of doing the same.

    NAME is one of: check, disk, engine, ingest, latency, ldfi, market-spread, mutants, price,
    proxies, shipped-mutants, sinks, spark-latency, state-size, steps, workers.
    """
    found = _measured(name, options)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    table = Table("figure", "value", "unit", "beside", "ratio", box=None)
    for key, reported in found["figures"].items():
        ratio = reported.get("ratio")
        shown = "" if ratio is None else f"{ratio:g}"
        value = f"{reported['value']:g}"
        row = (key, value, reported["unit"], reported.get("versus", ""), shown)
        table.add_row(*map(cell, row))
    ToReader(soft_wrap=True).print(table)


def _measured(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    bench = find(name, "bench").load()
    asked = {option: value for option, value in options.items() if value not in (None, False)}
    for option in asked.keys() - inspect.signature(bench).parameters:
        raise UsageError(f"bench {name} has no --{option}: leave it out")
    found: dict[str, Any] = bench(**asked)
    return found
