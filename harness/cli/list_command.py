"""``bettong list``."""

from __future__ import annotations

import json

import click
from rich.table import Table

from bettong.harness.catalog import entries
from bettong.harness.cli.console import ToReader
from bettong.harness.cli.printing import cell


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(as_json: bool) -> None:
    """List the scenarios, suites, protocols, sinks and jobs that there are."""
    found = [entry for entry in entries() if entry.kind != "exhibit"]
    if as_json:
        click.echo(json.dumps([entry.to_dict() for entry in found], indent=1))
        return
    table = Table("name", "kind", "expect", "title", box=None)
    for entry in found:
        shown = entry.to_dict()
        table.add_row(*(cell(shown[column]) for column in ("name", "kind", "expect", "title")))
    ToReader().print(table)
