"""Assertions for tests: a result or a sink, and what to print when it does not hold."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, Guarantee, Result, Run
from bettong.reports.sample import anomaly_counts, sample_anomalies, short_json
from bettong.reports.words import KIND_MEANING, faults_line, level_line

SHOWN_ANOMALIES = 5


def assert_effectively_once(
    sink: str | object,
    *,
    expect: Guarantee = "effectively-once",
    out: Path | None = None,
    **options: Any,
) -> Result:
    """Check a sink as ``bettong check-sink`` does, or a job as ``bettong check-job`` does; raises
    AssertionError unless it holds.

    Args:
        sink: a sink's or job's class, an object at the top of a module, or a target as
            ``bettong check-sink`` takes it, such as ``sinks.py:Orders`` or ``format:parquet``.
        expect: the level asked for.
        out: where result and reports are written, or None.
        options: further arguments of :func:`bettong.harness.queries.check.check_sink`.

    The message names the anomaly, the minimal faults that cause it and the line that shows it
    again. An answer that is not known is no pass.
    """
    from bettong.harness.queries.check import check_sink
    from bettong.harness.queries.job.check import check_job
    from bettong.harness.queries.job.loading import is_job

    target = target_of(sink)
    check = check_job if is_job(target) else check_sink
    result = check(target, expect=expect, **options)
    if out is not None:
        from bettong.reports import write_reports

        result.write(out)
        write_reports(result, out)
    assert_valid(result)
    return result


def target_of(sink: str | object) -> str:
    """``file.py:Name`` of a sink, so that the processes of a run can load it afresh; raises
    UsageError for what has no name of its own in a file."""
    if isinstance(sink, str):
        return sink
    made = sink if inspect.isclass(sink) or inspect.isfunction(sink) else type(sink)
    module = inspect.getmodule(made)
    named = {} if module is None else vars(module)
    name = next((n for n, value in named.items() if value is sink), None)
    file = None if module is None else getattr(module, "__file__", None)
    if name is None or file is None:
        raise UsageError(
            f"{sink!r} is not at the top of a module: the processes of a run cannot load it; "
            "give it a name there, or write file.py:Name"
        )
    return f"{file}:{name}"


def assert_valid(result: Result) -> None:
    """Raise AssertionError, with what a person needs, unless the verdict is ``valid``."""
    if result.verdict != "valid":
        raise AssertionError(failure_text(result))


def failure_text(result: Result) -> str:
    """Why a result is not valid, in a few lines: never a stack of calls."""
    return "\n".join(_lines(result))


def run_text(run: Run) -> str:
    """Why one run is not good."""
    lines = [f"{run.outcome} under {faults_line(run.faults)}", *_anomalies(run.anomalies)]
    lines += [f"never fired: {fault}" for fault in run.not_fired]
    return "\n".join([*lines, *([run.note] if run.note else [])])


def _lines(result: Result) -> Iterator[str]:
    yield f"{result.scenario}: {result.verdict}, {level_line(result)}"
    if result.reason:
        yield result.reason
    for example in result.counterexamples[:3]:
        yield ""
        yield f"minimal faults: {faults_line(example.faults)}"
        if example.words:
            yield example.words
        yield from _anomalies(example.anomalies)
        if example.advice:
            yield f"to repair: {example.advice}"
        if example.replay:
            yield f"replay: {example.replay}"
    if not result.counterexamples:
        yield from (f"{number} {kind}" for kind, number in anomaly_counts(result).items())
        yield from _anomalies(result.anomalies)


def _anomalies(anomalies: tuple[Anomaly, ...]) -> Iterator[str]:
    for a in sample_anomalies(anomalies, SHOWN_ANOMALIES):
        key = f" (key {a.key})" if a.key is not None else ""
        yield f"{a.kind} {', '.join(a.messages[:5])}{key}: {a.note or KIND_MEANING[a.kind]}"
        if (a.expected, a.seen) != (None, None):
            yield f"  expected {short_json(a.expected, 120)}, seen {short_json(a.seen, 120)}"
    if len(anomalies) > SHOWN_ANOMALIES:
        yield f"… {len(anomalies):,} anomalies in all"
