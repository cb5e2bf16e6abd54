"""A counterexample on the page: what happens, the pictures, the records, how to see it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import yaml

from bettong.lineage.results import Counterexample, Result
from bettong.lineage.trace import TraceError, TraceEvent, read_trace
from bettong.reports.lineage_cut import Lineage, lineage_of
from bettong.reports.page_tables import anomaly_table
from bettong.reports.rounds import rounds_diagram, told_lineage
from bettong.reports.spacetime import Diagram, around
from bettong.reports.svg import lineage_svg, spacetime_svg
from bettong.reports.words import faults_line

SHOWN_ANOMALIES = 20
_DIGEST = re.compile(r"\[[0-9a-f]{16}\]")
"""Tells apart firings of one rule; nothing to read."""


def counterexample_section(result: Result, number: int, directory: Path) -> Iterator[str]:
    """The lines of one counterexample, counted from 0."""
    example = result.counterexamples[number]
    name = f"ce{number + 1}"
    yield f'<article class="card" id="{name}"><h3>{number + 1}. '
    yield f"{escape(faults_line(example.faults))}</h3>"
    if example.words:
        yield f"<p>{escape(example.words)}</p>"
    if example.advice:
        yield f"<p><strong>To repair:</strong> {escape(example.advice)}</p>"
    if example.replay:
        yield f'<h4>See it again</h4><div class="replay"><pre id="{name}-replay">'
        yield f'{escape(example.replay)}</pre><button type="button" hidden '
        yield f'data-copy="{name}-replay">Copy</button></div>'
    if example.anomalies:
        yield "<h4>What a reader sees</h4>"
        yield from anomaly_table(example.anomalies, len(example.anomalies), SHOWN_ANOMALIES)
    yield from _pictures(result, example, number, directory)
    if example.frontier:
        yield "<h4>What the good run did and this one did not, nearest the outcome first</h4>"
        frontier = [_DIGEST.sub("", firing) for firing in example.frontier[:15]]
        items = "".join(f"<li><code>{escape(firing)}</code></li>" for firing in frontier)
        yield f"<ol>{items}</ol>"
    if example.schedule:
        text = yaml.safe_dump(dict(example.schedule), sort_keys=False, allow_unicode=True)
        yield f"<details><summary>Fault schedule</summary><pre>{escape(text)}</pre></details>"
    yield "</article>"


def _pictures(
    result: Result, example: Counterexample, number: int, directory: Path
) -> Iterator[str]:
    name = f"ce{number + 1}"
    reported = _told_pictures(result.details.get("pictures"), number)
    good: Diagram | None
    lineage: Lineage | None
    if reported is not None:
        picture, clean = reported
        bad = rounds_diagram(picture)
        good = rounds_diagram(clean) if clean else None
        lineage = told_lineage(picture.get("lineage", {}))
    else:
        messages = [m for a in example.anomalies for m in a.messages]
        events, problem = _events(directory, example.trace)
        clean_events, _ = _events(directory, result.details.get("good_trace"))
        if problem:
            yield f"<p>The trace cannot be drawn: {escape(problem)}</p>"
        if not events:
            return
        bad = around(events, example.faults, messages, clean_events)
        good = (
            around(clean_events, example.faults, messages, events, struck=False)
            if clean_events
            else None
        )
        given = result.details.get("lineage") or []
        lineage = told_lineage(given[number]) if number < len(given) and given[number] else None
        lineage = lineage or lineage_of(clean_events, events, example.faults, messages)
    yield "<h4>In space and time</h4>"
    yield _LEGEND
    yield from _figure(
        bad, f"{name}-bad", f"With {faults_line(example.faults)}", f"{len(example.faults)} faults"
    )
    if good is not None:
        yield "<details open><summary>Beside it: the same place of the good run</summary>"
        yield from _figure(good, f"{name}-good", "Without a fault", "no fault")
        yield "</details>"
    if lineage is not None:
        yield "<h4>Why the good outcome happened, and where the faults cut it</h4>"
        title = f"Lineage graph, causes at the top; {len(lineage.cut)} steps are cut off"
        yield (
            '<p class="legend"><span class="x">✕ a fault is here, — not in the faulted run</span>'
            '<span class="m">2x taken again in the faulted run</span></p>'
        )
        svg = lineage_svg(lineage, f"{name}-lineage", title)
        yield f'<div class="scroll" tabindex="0" role="group" aria-label="{title}">{svg}</div>'


_LEGEND = (
    '<p class="legend"><span>time runs down; <b>○</b> a step, its bar is how long it took</span>'
    '<span class="x">✕ a fault, or a message that is lost</span>'
    '<span class="w">● carried a message concerned</span>'
    '<span class="m">● only in this run</span><span>dashed: a reply</span></p>'
)


def _figure(diagram: Diagram, name: str, caption: str, faults: str) -> Iterator[str]:
    title = f"{caption}: {len(diagram.marks)} steps on {len(diagram.nodes)} nodes, {faults}"
    yield f"<figure><figcaption>{escape(caption)}</figcaption>"
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}">'
    yield f"{spacetime_svg(diagram, name, title)}</div>"
    yield "<details><summary>The same as a list</summary><ol>"
    struck = {(f.node, f.row): f.label for f in diagram.faults}
    for mark in diagram.marks:
        ending = {"done": "", "failed": ": failed", "never": ": never finished"}[mark.ending]
        fault = struck.get((mark.node, mark.row))
        yield f"<li>{escape(mark.node)}: <code>{escape(mark.label)}</code>{ending}"
        yield (f": <strong>{escape(fault)}</strong>" if fault else "") + "</li>"
    yield "</ol></details></figure>"


def _told_pictures(
    pictures: Any, number: int
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None] | None:
    if not isinstance(pictures, Mapping):
        return None
    reported: Sequence[Any] = pictures.get("counterexamples") or ()
    if number >= len(reported) or not reported[number]:
        return None
    return reported[number], pictures.get("good")


def _events(directory: Path, file: str | None) -> tuple[list[TraceEvent], str]:
    """Events of a trace beside the result, and why there are none."""
    if not file:
        return [], ""
    path = directory / file
    try:
        if not path.resolve().is_relative_to(directory.resolve()):
            return [], f"{file} is outside of the result's directory"
        return list(read_trace(path)), ""
    except (OSError, TraceError) as e:
        return [], str(e)
