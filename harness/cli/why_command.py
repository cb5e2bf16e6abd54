"""``bettong why``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import networkx as nx

from bettong.harness.cli.console import ToReader
from bettong.harness.cli.printing import plain
from bettong.harness.search.why import Why, result_trace, why
from bettong.lineage.trace import read_trace
from bettong.reports.lineage_cut import Box, Lineage
from bettong.reports.svg import lineage_svg


def _picture(answer: Why) -> str:
    boxes = []
    for depth, names in enumerate(nx.topological_generations(answer.graph)):
        for place, name in enumerate(sorted(names)):
            node = answer.graph.nodes[name]["occurrence"].node
            boxes.append(Box(name, node, depth, place, "plain"))
    lineage = Lineage(tuple(boxes), tuple(answer.graph.edges), frozenset())
    return lineage_svg(lineage, "why", f"Lineage of {answer.asked.name}")


@click.command("why", short_help="Explain from its lineage why a message became visible.")
@click.argument("directory", type=click.Path(path_type=Path, exists=True))
@click.argument("message")
@click.option("--dependents", is_flag=True, help="What depended on it, in place of why it was.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Another trace than that of the result's good run.",
)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it, too.")
@click.option("--json", "as_json", is_flag=True, help="Print steps and their causes as JSON.")
def command(
    directory: Path,
    message: str,
    dependents: bool,
    trace: Path | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Explain, from the lineage in a result's DIRECTORY, why MESSAGE became visible.

    MESSAGE is the id of a message or output (lines/17.2), or of a step (gateway.ack/lines/19).
    """
    events = list(read_trace(trace)) if trace else result_trace(directory)
    answer = why(events, message, dependents=dependents)
    if svg is not None:
        svg.write_text(_picture(answer), encoding="utf-8", errors="backslashreplace")
    if as_json:
        found = [
            {"step": o.name, "node": o.node, "link": o.link, "causes": causes}
            for o, causes in answer.in_order()
        ]
        click.echo(json.dumps({"asked": answer.asked.name, "steps": found}, indent=1))
        return
    console = ToReader(highlight=False, soft_wrap=True)
    what = "depended on" if dependents else "led to"
    console.print(
        f"{answer.graph.number_of_nodes() - 1} steps {what} {plain(answer.asked.name)}:",
        markup=False,
    )
    for occurrence, causes in answer.in_order():
        via = f" over {occurrence.link}" if occurrence.link else ""
        console.print(f"  {plain(f'{occurrence.node:9} {occurrence.name}{via}')}", markup=False)
        if causes:
            console.print(f"  {'':9}   because of {plain(', '.join(causes))}", markup=False)
    for step in answer.unread:
        console.print(f"  not in the trace: {plain(step)}", markup=False)
