"""What a job's output should be: the envelope of clean runs, sharpened by the oracle that the job
names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bettong.harness.processes.folders import temporary_folder
from bettong.harness.queries.job.compare import OuterBag, Table
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.envelope import Envelope, columns_of, table_of
from bettong.harness.queries.job.feed import write_rows
from bettong.harness.queries.job.host import BATCH
from bettong.harness.queries.job.inputs import StepInput
from bettong.harness.queries.job.judge import Judged, bag_of
from bettong.harness.queries.job.loading import given_of
from bettong.harness.queries.job.made_rows import columns_of as schema_columns
from bettong.harness.queries.job.once import Once, one_of_each_key
from bettong.harness.queries.job.oracles import Clean, OnePerKey
from bettong.harness.queries.job.rules import Expected, Row, late
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.sense import VacuousError
from bettong.harness.spark.driver import DriverError

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "millisecond": 0.001}
Ask = Callable[[str, Mapping[str, Any]], Any]
"""Has a warm driver call ``module:function`` with these arguments. Raises DriverError."""


@dataclass(frozen=True)
class Facts:
    """What the plan and the progress of a clean run show.

    Attributes:
        watermarks: event-time columns with their delay in seconds.
        stateful: its stateful operators.
        dropped: rows that were dropped because they came after the watermark.
        by_the_clock: where the clock decides which rows it puts out.
    """

    watermarks: Mapping[str, float]
    stateful: tuple[str, ...]
    dropped: int
    by_the_clock: tuple[str, ...]

    @classmethod
    def of(cls, facts: Sequence[Mapping[str, Any]]) -> Facts:
        """From what the incarnations of a run have reported."""
        marks = {
            column: seconds(delay) for each in facts for column, delay in each.get("watermarks", ())
        }
        return cls(
            marks,
            tuple(sorted({op for each in facts for op in each.get("stateful", ())})),
            sum(each.get("dropped", 0) for each in facts),
            tuple(sorted({part for each in facts for part in each.get("by_the_clock", ())})),
        )


def seconds(delay: str) -> float:
    """A delay as Spark's plans write it: ``10 minutes``, ``1 hours 30 minutes``."""
    parts = re.findall(r"(-?[\d.]+) (\w+?)s?\b", delay)
    return float(sum(float(n) * _UNITS.get(unit, 0) for n, unit in parts))


@dataclass(frozen=True)
class Expectation:
    """What later runs are held against.

    Attributes:
        oracle: what says so, in words.
        assumptions: what it takes for granted.
    """

    judged: Judged
    oracle: str
    assumptions: tuple[str, ...] = ()


def expectation(
    job: Job,
    workload: JobWorkload,
    facts: Facts,
    clean: Envelope,
    ask: Ask,
    runs: Sequence[Sequence[Row]],
) -> Expectation:
    """What is expected, given the rows of clean runs, of the plain one first; raises VacuousError
    where nothing can say what is right."""
    columns = tuple(columns_of(job.compare, runs[0]))
    left: tuple[str, ...] = ()
    if isinstance(job.compare, OuterBag):
        given = job.inputs[job.compare.left]
        names = schema_columns(given.schema) if isinstance(given, StepInput) else {}
        left = tuple(name for name in columns if name in names)
    if facts.by_the_clock and isinstance(job.oracle, str | Clean | OnePerKey):
        raise VacuousError(
            f"{job.name}: it goes by the clock ({', '.join(facts.by_the_clock)}), which decides "
            "which rows it puts out: give an oracle of your own, a function of the input's rows"
        )
    if isinstance(job.oracle, OnePerKey):
        once = _once(job, job.oracle, workload, ask, columns, runs)
        judged = Judged(job.compare, clean.expected, once, columns, left)
        among = given_of(job, job.oracle)
        return Expectation(judged, f"one row of each {', '.join(once.key)} among {among}")
    if callable(job.oracle):
        inputs = {n: g.rows for n, g in job.inputs.items() if isinstance(g, StepInput)}
        function = job.oracle.__func__ if hasattr(job.oracle, "__func__") else job.oracle
        must = [dict(row) for row in function(inputs)]
        if not must:
            raise VacuousError(f"{job.name}: its oracle expects no row: nothing can be concluded")
        free = frozenset(job.compare.free)
        return Expectation(
            Judged(job.compare, Expected(must, free=free), None, columns, left),
            "the job's own oracle",
        )
    if job.oracle == "batch":
        return _by_batch(job, workload, facts, clean, ask, columns, left)
    if facts.dropped:
        raise VacuousError(
            f"{job.name}: {facts.dropped} row(s) came too late for the watermark without any "
            'fault: give oracle = "batch" or one of your own, which says what they may change'
        )
    if clean.blind:
        raise VacuousError(f"{job.name}: {clean.blind}")
    return Expectation(
        Judged(job.compare, clean.expected, None, columns, left), "the envelope of clean runs"
    )


def _once(
    job: Job,
    oracle: OnePerKey,
    workload: JobWorkload,
    ask: Ask,
    columns: Sequence[str],
    runs: Sequence[Sequence[Row]],
) -> Once:
    among = given_of(job, oracle)
    given = job.inputs[among]
    assert isinstance(given, StepInput)
    every = [row for step in given.steps for row in step]
    free = frozenset(job.compare.free)
    latest = job.compare.latest if isinstance(job.compare, Table) else ""
    own = [n for n in columns if n != latest and n not in schema_columns(given.schema)]
    once = Once(oracle.key, every, free=free, tolerance=job.compare.tolerance)
    once = once.held_against(runs, own)
    if not once.own or not _is_fed(job) or not job.has_transform:
        return once
    others = {
        name: [row for step in one.steps for row in step]
        for name, one in job.inputs.items()
        if isinstance(one, StepInput)
    }
    made: list[Row] = []
    try:
        for alone in one_of_each_key(every, oracle.key):
            made += _batch(workload, ask, {**others, among: alone}, job)
    except VacuousError:  # what it does cannot be done to plain frames
        return once
    return once.asked(made)


def _is_fed(job: Job) -> bool:
    return all(isinstance(given, StepInput) for given in job.inputs.values())


def _by_batch(
    job: Job,
    workload: JobWorkload,
    facts: Facts,
    clean: Envelope,
    ask: Ask,
    columns: tuple[str, ...],
    left: tuple[str, ...],
) -> Expectation:
    steps = {n: g.steps for n, g in job.inputs.items() if isinstance(g, StepInput)}
    closing = {
        n: len(g.steps) - 1
        for n, g in job.inputs.items()
        if isinstance(g, StepInput) and g.closing is not None
    }
    column, delay = {}, {}
    for name, given in job.inputs.items():
        assert isinstance(given, StepInput)
        for at, after in facts.watermarks.items():
            if at in schema_columns(given.schema):
                column[name], delay[name] = at, after
    may = late(steps, column, delay)
    every = {n: [row for step in each for row in step] for n, each in steps.items()}
    open_groups = {
        n: [row for k, step in enumerate(each) if k != closing.get(n) for row in step]
        for n, each in steps.items()
    }
    in_time = {
        n: [
            row
            for k, step in enumerate(each)
            if k != closing.get(n)
            for place, row in enumerate(step)
            if (k, place) not in may[n]
        ]
        for n, each in steps.items()
    }
    sets = {"all": every, "without the closing row": open_groups}
    number = sum(len(x) for x in may.values())
    if number:
        sets["without late rows"] = in_time
    outputs = {name: _batch(workload, ask, chosen, job) for name, chosen in sets.items()}
    free = frozenset(job.compare.free)
    if isinstance(job.compare, Table):
        expected = _table(job.compare, outputs, free, bool(number))
    else:
        judged = [name for name in columns if name not in free]
        found = bag_of(outputs, judged)
        expected = Expected(found.must, found.optional, free)
    if not expected.must:
        raise VacuousError(
            f"{job.name}: its batch form gives no row that has to be there: feed more rows, or a "
            "closing row further on"
        )
    assumptions = (
        (f"{number} row(s) come so late that they may be dropped, and may count",) if number else ()
    )
    return Expectation(
        Judged(job.compare, expected, None, columns, left), "the batch form of the job", assumptions
    )


def _table(
    compare: Table,
    outputs: Mapping[str, Sequence[Row]],
    free: frozenset[str],
    counts_may: bool,
) -> Expected:
    """Keys of all batch runs have to be there, with the values of one of them."""
    tables = [table_of(compare, rows) for rows in outputs.values()]
    least = tables[-1]
    must = [row for cell, row in least.items() if all(cell in table for table in tables)]
    optional = [row for table in tables for row in table.values()]
    latest = frozenset({compare.latest} if compare.latest else ())
    return Expected(must, optional, free | latest, between=counts_may)


def _batch(
    workload: JobWorkload,
    ask: Ask,
    chosen: Mapping[str, Sequence[Row]],
    job: Job,
) -> list[Row]:
    with temporary_folder("bettong-batch-") as folder:
        inputs = {}
        for name, rows in chosen.items():
            given = job.inputs[name]
            assert isinstance(given, StepInput)
            path = folder / f"{name}.json"
            write_rows(path, "json", given.schema, rows)
            inputs[name] = {"path": str(path), "schema": given.schema}
        arguments = {"target": asdict(workload.target), "directory": str(folder), "inputs": inputs}
        try:
            found: list[Row] = ask(BATCH, arguments)
        except DriverError as e:
            raise VacuousError(
                f"{job.name}: its transform fails on plain frames: {e}: use oracle = Clean()"
            ) from e
        return found
