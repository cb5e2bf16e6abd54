"""A result as the terminal shows it: what each kind of question has to say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bettong.lineage.counted import counted
from bettong.lineage.results import Anomaly, Result, of_each_kind
from bettong.reports.words import VERDICT_SIGN, level_line

STYLES = {"valid": "green", "invalid": "red", "unknown": "yellow"}
_ANOMALIES = 5
_RECORDS = 10
_VALUE = 160


class Line(NamedTuple):
    """A line of text, and its style in rich's words."""

    text: str
    style: str = ""


def lines_of(result: Result, out: Path | None) -> Iterator[Line]:
    """What is printed of a result that is kept in a folder, or nowhere."""
    style = STYLES[result.verdict]
    if result.kind == "protocol":
        yield Line(f"{result.scenario}: {result.verdict}", style)
        yield from _protocol(result, out)
    elif result.kind in ("sink", "job"):
        yield Line(f"{result.scenario}: {level(result)} ({result.verdict})", style)
        yield from _query(result)
    elif result.kind == "check":
        sign = VERDICT_SIGN[result.verdict]
        yield Line(f"{sign} {result.verdict}: {level_line(result)}", style)
        yield from _check(result)
    else:
        sign = VERDICT_SIGN[result.verdict]
        yield Line(f"{sign} {result.scenario}: {result.verdict}", style)
        yield from _scenario(result, out)


def level(result: Result) -> str:
    """The level that was found."""
    if result.kind == "job" and result.expected is None:
        return "no fault tried"
    return "level not known" if result.verdict == "unknown" else result.guarantee


def table_of(results: Sequence[tuple[str, Result]]) -> Iterator[Line]:
    """A line for each of several targets."""
    width = max(len(target) for target, _ in results)
    for target, result in results:
        runs = f"{result.coverage.executions:4} runs  {result.duration_s:5.0f} s"
        yield Line(f"{target:{width}}  {level(result):16}  {result.verdict:7}  {runs}")


def _scenario(result: Result, out: Path | None) -> Iterator[Line]:
    yield Line(f"  {level_line(result)}; {result.reason}")
    for limit in result.details.get("limits", ()):
        yield Line(f"  not shown: {limit}")
    for anomaly in of_each_kind(result.anomalies, _ANOMALIES):
        yield Line(f"  {_anomaly(anomaly)}")
    if len(result.anomalies) > _ANOMALIES:
        yield Line(f"  and {len(result.anomalies) - _ANOMALIES} more anomalies")
    for example in result.counterexamples:
        if example.faults:
            yield Line(f"  faults: {', '.join(example.faults)}")
        yield Line(f"  again: {example.replay}")
    report = f"; report: {out / 'report.html'}" if out is not None else ""
    yield Line(f"  {counted(len(result.runs), 'run')} in {result.duration_s:.1f} s{report}")


def _anomaly(anomaly: Anomaly) -> str:
    parts = [anomaly.kind, ", ".join(anomaly.messages[:3])]
    parts += [f"key {anomaly.key}"] if anomaly.key is not None else []
    parts += [anomaly.note] if anomaly.note else []
    return "; ".join(parts)


def _query(result: Result) -> Iterator[Line]:
    yield Line(f"  {result.reason}")
    if (never_ran := result.details.get("never_ran")) and "never ran" not in result.reason:
        yield Line(f"  {never_ran}")
    if result.ordering == "per-key":
        yield Line("  order per key is kept")
    if result.details.get("atomic") == "torn":
        yield Line("  batches are not atomic: a reader saw a part of one")
    for varies in result.details.get("envelope", ()):
        yield Line(f"  this depends on how batches are cut: {varies}")
    for asked, anew in result.details.get("new_checkpoint", {}).items():
        yield Line(f"  {asked}, over the old target: {anew['guarantee']}")
        if anew["words"]:
            yield Line(f"    {anew['words']}")
    for example in result.counterexamples:
        yield Line("")
        yield Line(f"  {' + '.join(example.faults) or 'without any fault'}")
        yield Line(f"    {example.words}")
        yield Line(f"    Repair: {example.advice}")
        yield Line(f"    See it again: {example.replay}")
    c = result.coverage
    yield Line("")
    yield Line(
        f"  {counted(c.executions, 'run')}, {c.injected} with faults, "
        f"{counted(c.pruned, 'fault set')} folded, "
        f"{result.duration_s:.0f} s"
    )


def _protocol(result: Result, out: Path | None) -> Iterator[Line]:
    coverage = result.coverage
    yield Line(f"  {result.reason}")
    for example in result.counterexamples:
        yield Line(f"  {', '.join(example.faults)}", "bold")
        yield Line(f"    {example.words}")
        if example.advice:
            yield Line(f"    what would help: {example.advice}")
        yield Line(f"    again: {example.replay}")
    bounds = next(iter(result.assumptions), "")
    yield Line(f"  {bounds}: {coverage.fault_space or 0:,} schedules")
    yield Line(
        f"  {counted(coverage.executions, 'run')} ({coverage.vacuous:,} vacuous, "
        f"{counted(coverage.violated, 'violation')}) in {result.duration_s:.1f} s"
    )
    if out is not None:
        yield Line(f"  report: {out / 'report.html'}")


def _check(result: Result) -> Iterator[Line]:
    yield Line(result.reason)
    for line in result.details.get("malformed", ())[1:]:
        yield Line(f"  {line}")
    for a in of_each_kind(result.anomalies, _RECORDS):
        key = f" (key {a.key})" if a.key is not None else ""
        yield Line(f"  {a.kind} {', '.join(a.messages)}{key}: {a.note or ''}")
        if a.expected is not None or a.seen is not None:
            yield Line(f"    expected {_short(a.expected)}, seen {_short(a.seen)}")
    total = sum(result.details.get("anomaly_counts", {}).values())
    if total > _RECORDS:
        yield Line(f"  … {total:,} anomalies in all; --out DIR writes a report")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"
