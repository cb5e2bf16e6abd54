"""Rows that a query may drop for they come after the watermark, and what it holds back until the
watermark has come further."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from typing import Any

from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.facts import Facts
from bettong.harness.queries.job.feed import closed_at_the_end
from bettong.harness.queries.job.inputs import Input, StepInput
from bettong.harness.queries.job.made_rows import columns_of
from bettong.harness.queries.job.rules import Cell, Row, cell_of, late, moment
from bettong.harness.queries.job.values import is_number, is_time
from bettong.harness.queries.sense import VacuousError

May = dict[str, set[tuple[int, int]]]
"""Rows that may be dropped, as (step, place) by input."""
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""So many of them are a second."""
_FAR_S = 1e11
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def may_be_dropped(job: Job, facts: Facts) -> May:
    """The rows that come after the watermark. Raises VacuousError where it cannot be told which
    they are."""
    fed = {n: given.steps for n, given in job.inputs.items() if isinstance(given, StepInput)}
    steps = closed_at_the_end(fed, job.inputs)
    if not facts.stateful:  # only operators with state drop rows
        return {name: set() for name in steps}
    column = _event_times(job, facts)
    told = all(_are_told(job.inputs[name], at) for name, at in column.items())
    if not told or facts.watermarks.keys() - set(column.values()):
        if facts.dropped:
            raise _nobody_can_tell(job, facts)
        return {name: set() for name in steps}  # in batches that are cut alike none will be either
    for name, at in column.items():
        kind = columns_of(_schema(job, name))[at]
        steps[name] = [[{at: _seconds(row.get(at), kind)} for row in step] for step in steps[name]]
    under_one = [each & column.keys() for each in facts.together]
    greatest = job.spark_config.get(_POLICY, "min") == "max"
    found = [
        late(
            steps, column, dict(zip(column, delays, strict=True)), greatest, filter(None, under_one)
        )
        for delays in product(*(facts.watermarks[at] for at in column.values()))
    ]
    if any(may != found[0] for may in found):
        raise VacuousError(
            f"{job.name}: event times of its inputs are called alike and have several delays, so "
            "that it cannot be told which rows come too late: give them names of their own"
        )
    if facts.dropped and not any(found[0].values()):
        raise _nobody_can_tell(job, facts)
    return found[0]


def _nobody_can_tell(job: Job, facts: Facts) -> VacuousError:
    return VacuousError(
        f"{job.name}: {facts.dropped} row(s) came too late for the watermark without any fault, "
        "and the event times of its inputs do not tell which: have each watermark go by a column "
        "of its input, or give an oracle of your own, a function of the input's rows"
    )


def expect_closed(job: Job, facts: Facts, lost: Sequence[str]) -> None:
    """Raises VacuousError where rows are missing without any fault, and nothing that is fed closes
    what waits for the watermark."""
    marked = [name for name, at in _event_times(job, facts).items() if at]
    given = {name: job.inputs[name] for name in marked or job.inputs}
    never = [n for n, one in given.items() if isinstance(one, StepInput) and one.closing is None]
    if lost and never and facts.stateful and facts.watermarks:
        raise VacuousError(
            f"{job.name}: {len(lost)} row(s) are missing without any fault, such as {lost[0]}, and "
            f"may wait for the watermark: nothing closes what the input {', '.join(never)} has "
            'opened: give it closing=, e.g. closing="2030-01-01"'
        )


def late_keys(
    rows: Sequence[Sequence[Row]], key: Sequence[str], may: set[tuple[int, int]]
) -> frozenset[Cell]:
    """The keys of which every row may be dropped."""
    places = {(step, place) for step, each in enumerate(rows) for place in range(len(each))}
    kept = {cell_of(rows[step][place], key) for step, place in places - may}
    return frozenset({cell_of(rows[step][place], key) for step, place in may} - kept)


def doubles_beyond(
    job: Job, facts: Facts, among: str, rows: Sequence[Row], key: Sequence[str]
) -> dict[Cell, int]:
    """How many rows of a key a deduplication within the watermark may keep: it forgets a key when
    the delay is over."""
    at = _event_times(job, facts).get(among)
    if at is None or not any("WithinWatermark" in operator for operator in facts.stateful):
        return {}
    kind = columns_of(_schema(job, among))[at]
    times: dict[Cell, list[float]] = defaultdict(list)
    for row in rows:
        time = _seconds(row.get(at), kind)
        if time is not None:
            times[cell_of(row, key)].append(time)
    delay = min(facts.watermarks[at])
    return {cell: _apart(sorted(each), delay) for cell, each in times.items()}


def _apart(times: Sequence[float], delay: float) -> int:
    """How many of some times are further apart than the delay."""
    number, last = 1, times[0]
    for time in times:
        if time - last > delay:
            number, last = number + 1, time
    return number


def _schema(job: Job, name: str) -> str:
    given = job.inputs[name]
    assert isinstance(given, StepInput)
    return given.schema


def _seconds(value: Any, kind: str) -> float | None:
    """An event time as the watermark has it. Spark reads a number as seconds where it reads a
    timestamp; a number of which the job makes one itself is of the unit in which it lies between
    1973 and 5138, if it is not of seconds."""
    if value is None:
        return None
    if kind.startswith("timestamp") or not is_number(value):
        return moment(value)
    unit = next((each for each in _UNITS if abs(value) / each < _FAR_S), _UNITS[-1])
    return value / unit


def _event_times(job: Job, facts: Facts) -> dict[str, str]:
    """The column of each input that the watermark goes by."""
    fed = {name: columns_of(g.schema) for name, g in job.inputs.items() if isinstance(g, StepInput)}
    return {
        name: at
        for name, columns in fed.items()
        if name not in facts.unmarked
        for at in facts.watermarks
        if at in columns
    }


def _are_told(given: Input, at: str) -> bool:
    """Whether its event times are no texts that the job alone can read as times."""
    if not isinstance(given, StepInput) or columns_of(given.schema)[at] != "string":
        return True
    values = [row.get(at) for step in given.steps for row in step]
    return all(value is None or is_time(value) for value in values)
