"""``bettong doctor``."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.text import Text

from bettong.harness.cli.console import ToReader
from bettong.harness.cli.doctor import Finding, examine
from bettong.harness.cli.printing import cell, complain

STYLES = {"ok": "green", "limited": "yellow", "missing": "red"}


def _print(findings: list[Finding]) -> None:
    console = ToReader(highlight=False, soft_wrap=True)
    for finding in findings:
        mark = Text(f"{finding.status:8}", style=STYLES[finding.status])
        console.print(mark, cell(f"{finding.name}: {finding.found}"))
        if finding.status != "ok":
            console.print(cell(f"{'':8} costs: {finding.cost}"))
            console.print(cell(f"{'':8} to get it: {finding.remedy}"))


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Say what this machine has, and what each missing thing costs.

    Ends 0 when everything that a run needs is there, 2 when something is missing.
    """
    findings = list(examine())
    if as_json:
        click.echo(json.dumps([asdict(f) for f in findings], indent=1))
    else:
        _print(findings)
    needed = [f.name for f in findings if f.required and f.status == "missing"]
    if needed:
        complain(f"cannot run here without: {', '.join(needed)}")
    click.get_current_context().exit(2 if needed else 0)
