"""A counterexample on the page: what happens, the pictures, the records, how to see it again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from bettong.lineage.results import Counterexample, Result
from bettong.lineage.trace import TraceError, TraceEvent, read_trace
from bettong.reports.lineage_cut import Lineage, lineage_of
from bettong.reports.page_tables import anomaly_table
from bettong.reports.rounds import recorded_lineage, rounds_diagram
from bettong.reports.spacetime import Diagram, around
from bettong.reports.svg import lineage_svg, spacetime_svg
from bettong.reports.words import faults_line

SHOWN_ANOMALIES = 20
_DIGEST = re.compile(r"\[[0-9a-f]{16}\]")
"""Tells apart firings of one rule; nothing to read."""


def counterexample_of(result: Result, number: int, directory: Path) -> dict[str, Any]:
    """What the page shows of one counterexample, counted from 0."""
    example = result.counterexamples[number]
    schedule = dict(example.schedule or {})
    pictures, problem = _pictures(result, example, number, directory)
    shown = anomaly_table(example.anomalies, len(example.anomalies), SHOWN_ANOMALIES)
    return {
        "id": f"ce{number + 1}",
        "number": number + 1,
        "faults": faults_line(example.faults),
        "words": example.words,
        "advice": example.advice,
        "replay": example.replay,
        "anomalies": shown if example.anomalies else None,
        "problem": problem,
        "pictures": pictures,
        "frontier": [_DIGEST.sub("", firing) for firing in example.frontier[:15]],
        "schedule": yaml.safe_dump(schedule, sort_keys=False, allow_unicode=True)
        if schedule
        else "",
    }


def _pictures(
    result: Result, example: Counterexample, number: int, directory: Path
) -> tuple[dict[str, Any] | None, str]:
    """The figures, and why there are none."""
    name, problem = f"ce{number + 1}", ""
    reported = _recorded_pictures(result.details.get("pictures"), number)
    good: Diagram | None
    lineage: Lineage | None
    if reported is not None:
        picture, clean = reported
        bad = rounds_diagram(picture)
        good = rounds_diagram(clean) if clean else None
        lineage = recorded_lineage(picture.get("lineage", {}))
    else:
        messages = [m for a in example.anomalies for m in a.messages]
        events, problem = _events(directory, example.trace)
        clean_events, _ = _events(directory, result.details.get("good_trace"))
        if not events:
            return None, problem
        bad = around(events, example.faults, messages, clean_events)
        good = (
            around(clean_events, example.faults, messages, events, injected=False)
            if clean_events
            else None
        )
        given = result.details.get("lineage") or []
        lineage = recorded_lineage(given[number]) if number < len(given) and given[number] else None
        lineage = lineage or lineage_of(clean_events, events, example.faults, messages)
    caption, faults = f"With {faults_line(example.faults)}", f"{len(example.faults)} faults"
    return {
        "bad": _figure(bad, f"{name}-bad", caption, faults),
        "good": good and _figure(good, f"{name}-good", "Without a fault", "no fault"),
        "lineage": lineage and _lineage(lineage, f"{name}-lineage"),
    }, problem


def _lineage(lineage: Lineage, name: str) -> dict[str, Any]:
    title = f"Lineage graph, causes at the top; {len(lineage.cut)} steps are cut off"
    return {"title": title, "svg": Markup(lineage_svg(lineage, name, title))}  # noqa: S704 - escaped there


def _figure(diagram: Diagram, name: str, caption: str, faults: str) -> dict[str, Any]:
    title = f"{caption}: {len(diagram.marks)} steps on {len(diagram.nodes)} nodes, {faults}"
    faulted = {(f.node, f.row): f.label for f in diagram.faults}
    return {
        "caption": caption,
        "title": title,
        "svg": Markup(spacetime_svg(diagram, name, title)),  # noqa: S704 - escaped there
        "steps": [
            {
                "node": mark.node,
                "label": mark.label,
                "ending": _ENDINGS[mark.ending],
                "fault": faulted.get((mark.node, mark.row)),
            }
            for mark in diagram.marks
        ],
    }


_ENDINGS = {"done": "", "failed": ": failed", "never": ": never finished"}


def _recorded_pictures(
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
