"""``bettong list``."""

from __future__ import annotations

import json

import click

from bettong.harness.catalog import entries
from bettong.harness.cli.printing import say

_COLUMNS = ("name", "kind", "expect", "title")


@click.command("list", short_help="List scenarios, suites, protocols, sinks, jobs and benches.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(as_json: bool) -> None:
    """List the scenarios, suites, protocols, sinks and jobs that there are, each in one line
    whose first word is the name that other commands take."""
    found = [entry for entry in entries() if entry.kind != "exhibit"]
    if as_json:
        click.echo(json.dumps([entry.to_dict() for entry in found], indent=1))
        return
    rows = [[entry.to_dict()[column] for column in _COLUMNS] for entry in found]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        say("  ".join(padded).rstrip())
