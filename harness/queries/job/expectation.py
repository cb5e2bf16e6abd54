"""What a job's output should be: the envelope of clean runs, sharpened by the oracle that the job
names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from bettong.harness.processes.folders import temporary_folder
from bettong.harness.queries.job.compare import Bag, OuterBag, Table, expect_made
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.envelope import Envelope, columns_of, table_of
from bettong.harness.queries.job.facts import Facts
from bettong.harness.queries.job.feed import write_rows
from bettong.harness.queries.job.host import BATCH
from bettong.harness.queries.job.inputs import StepInput
from bettong.harness.queries.job.judge import Judged, bag_of, nothing_of
from bettong.harness.queries.job.late_rows import (
    doubles_beyond,
    expect_closed,
    late_keys,
    may_be_dropped,
)
from bettong.harness.queries.job.loading import given_of
from bettong.harness.queries.job.made_rows import columns_of as schema_columns
from bettong.harness.queries.job.once import Once, one_of_each_key
from bettong.harness.queries.job.oracles import Clean, OnePerKey
from bettong.harness.queries.job.own_oracle import rows_by_oracle
from bettong.harness.queries.job.rules import Expected, Row, cell_of
from bettong.harness.queries.job.typed import BYTES, Kind, kind_of_rows
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.job.written import Written, bare_rows, from_base64, written
from bettong.harness.queries.sense import VacuousError
from bettong.harness.spark.driver import DriverError
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of

_FEW = 3
"""Late rows of which every choice is made: eight runs of the batch form."""
Ask = Callable[[str, Mapping[str, Any]], Any]
"""Has a warm driver call ``module:function`` with these arguments. Raises DriverError."""


@dataclass(frozen=True)
class Expectation:
    """What later runs are held against.

    Attributes:
        oracle: what says so, in words.
        assumptions: what it takes for granted.
        by_cut: whether how batches are cut may decide what is right: some rows come late.
    """

    judged: Judged
    oracle: str
    assumptions: tuple[str, ...] = ()
    by_cut: bool = False


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
    left = _left(job, columns)
    if facts.by_the_clock and isinstance(job.oracle, str | Clean | OnePerKey):
        raise VacuousError(
            f"{job.name}: it goes by the clock ({', '.join(facts.by_the_clock)}), which decides "
            "which rows it puts out: give an oracle of your own, a function of the input's rows"
        )
    if isinstance(job.oracle, OnePerKey):
        once, how = _once(job, job.oracle, workload, facts, ask, columns, runs)
        judged = Judged(job.compare, clean.expected, once, columns, left, written=how)
        among = given_of(job, job.oracle)
        return Expectation(judged, f"one row of each {', '.join(once.key)} among {among}")
    if callable(job.oracle):
        judged = _held_against(job, rows_by_oracle(job), columns, left, runs)
        _expect_closed(job, facts, judged, runs[0])
        return Expectation(judged, "the job's own oracle")
    if job.oracle == "batch":
        found = _by_batch(job, workload, facts, ask, columns, left, runs)
        _expect_closed(job, facts, found.judged, runs[0])
        return found
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
    facts: Facts,
    ask: Ask,
    columns: Sequence[str],
    runs: Sequence[Sequence[Row]],
) -> tuple[Once, Written]:
    among = given_of(job, oracle)
    given = job.inputs[among]
    assert isinstance(given, StepInput)
    output = tuple(dict.fromkeys(name for row in runs[0] for name in row))
    for name in oracle.key:
        one_of(name, output, f"{job.name}: in its output, OnePerKey's column")
    schema = schema_columns(given.schema)
    fed = [[_fed(row, schema) for row in step] for step in given.steps]
    every = [row for step in fed for row in step]
    own = [n for n in columns if n != _latest(job.compare) and n not in schema]
    once = Once(
        oracle.key,
        every,
        free=_free(job.compare),
        tolerance=job.compare.tolerance,
        columns=job.compare.columns if isinstance(job.compare, Bag) else (),
        late=late_keys(fed, oracle.key, may_be_dropped(job, facts).get(among, set())),
        most=doubles_beyond(job, facts, among, every, oracle.key),
    )
    given_bytes = {n: BYTES for n, what in schema.items() if what == "binary"}
    how = Written.of(Kind("struct", given_bytes), every, runs)
    held = once.held_against([how.rows(rows) for rows in runs], own)
    if not held.own or not _is_fed(job) or not job.has_transform:
        return held, how
    others = {
        name: [row for step in one.steps for row in step]
        for name, one in job.inputs.items()
        if isinstance(one, StepInput)
    }
    made: list[Row] = []
    try:
        for alone in one_of_each_key([row for step in given.steps for row in step], oracle.key):
            made += _batch(workload, ask, {**others, among: alone}, job)
    except VacuousError:  # what it does cannot be done to plain frames
        return held, how
    typed = kind_of_rows(made)
    kind = Kind("struct", {**(typed.of if typed else {}), **given_bytes})
    known = bare_rows(made, kind)
    how = Written.of(kind, [*every, *known], runs)
    held = once.held_against([how.rows(rows) for rows in runs], own)
    return held.asked(known), how


def _fed(row: Row, schema: Mapping[str, str]) -> Row:
    """A row of an input with all its columns; what JSON has of bytes is base64."""
    found = {**dict.fromkeys(schema), **row}
    for name, kind in schema.items():
        if kind == "binary" and isinstance(found[name], str):
            digits = from_base64(found[name])
            found[name] = found[name] if digits is None else digits
    return found


def _left(job: Job, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of an outer join's output that are of the side whose rows are all there."""
    if not isinstance(job.compare, OuterBag):
        return ()
    given = job.inputs[job.compare.left]
    names = schema_columns(given.schema) if isinstance(given, StepInput) else {}
    left = tuple(name for name in columns if name in names)
    if not left:
        raise UsageError(
            f"{job.name}: OuterBag(left={job.compare.left!r}): its output has none of that input's "
            f"columns ({', '.join(names) or 'which are not known'}): keep one by its name, or use "
            "Bag(…)"
        )
    return left


def _latest(compare: Bag | Table | OuterBag) -> str:
    return compare.latest if isinstance(compare, Table) else ""


def _free(compare: Bag | Table | OuterBag) -> frozenset[str]:
    """What is not compared; which update is the last one is no value of it."""
    return frozenset((*compare.free, *filter(None, [_latest(compare)])))


def _all_columns(
    compare: Bag | Table | OuterBag, columns: tuple[str, ...], made: Sequence[Row]
) -> tuple[str, ...]:
    """Where none are named, those too that only what is expected has: JSON leaves nulls out, so
    that no row of an output may have them."""
    if isinstance(compare, Table) or (isinstance(compare, Bag) and compare.columns):
        return columns
    return tuple(dict.fromkeys((*columns, *columns_of(compare, made))))


def _expect_closed(job: Job, facts: Facts, judged: Judged, clean: Sequence[Row]) -> None:
    found = judged.difference(clean).anomalies
    expect_closed(job, facts, [", ".join(a.messages) for a in found if a.kind == "Loss"])


def _is_fed(job: Job) -> bool:
    return all(isinstance(given, StepInput) for given in job.inputs.values())


def _by_batch(
    job: Job,
    workload: JobWorkload,
    facts: Facts,
    ask: Ask,
    columns: tuple[str, ...],
    left: tuple[str, ...],
    runs: Sequence[Sequence[Row]],
) -> Expectation:
    steps = {n: g.steps for n, g in job.inputs.items() if isinstance(g, StepInput)}
    closing = {
        n: len(g.steps) - 1
        for n, g in job.inputs.items()
        if isinstance(g, StepInput) and g.closing is not None
    }
    may = may_be_dropped(job, facts)
    every = {n: [row for step in each for row in step] for n, each in steps.items()}
    late = [(n, k, place) for n, found in may.items() for k, place in sorted(found)]
    number = len(late)

    def without(dropped: Collection[tuple[str, int, int]]) -> dict[str, list[Row]]:
        return {
            n: [
                row
                for k, step in enumerate(each)
                if k != closing.get(n)
                for place, row in enumerate(step)
                if (n, k, place) not in dropped
            ]
            for n, each in steps.items()
        }

    sets: dict[str, Mapping[str, Sequence[Row]]] = {
        "all": every,
        "without the closing row": without(()),
    }
    if number <= _FEW:  # each may be dropped by itself
        some = [c for size in range(1, number) for c in combinations(late, size)]
        sets |= {f"without {dropped}": without(dropped) for dropped in some}
    if number:
        sets["without late rows"] = without(late)
    outputs = {name: _batch(workload, ask, chosen, job) for name, chosen in sets.items()}
    made = [row for rows in outputs.values() for row in rows]
    if made:
        expect_made(job.name, job.compare, made, "its batch form")
    judged = _held_against(job, outputs, columns, left, runs, between=number > _FEW)
    if not judged.expected.must and not judged.expected.groups:
        raise VacuousError(
            f"{job.name}: its batch form gives no row that has to be there: feed more rows, or a "
            "closing row further on"
        )
    assumptions = (
        (f"{number} row(s) come so late that they may be dropped, and may count",) if number else ()
    )
    return Expectation(judged, "the batch form of the job", assumptions, by_cut=number > 0)


def _held_against(
    job: Job,
    outputs: Mapping[str, Sequence[Row]],
    columns: tuple[str, ...],
    left: tuple[str, ...],
    runs: Sequence[Sequence[Row]],
    *,
    between: bool = False,
) -> Judged:
    """By the typed rows that are made of all rows, and of fewer and fewer of those that may
    count."""
    outputs, how = written(outputs, runs)
    sides: Sequence[Row] = ()
    if isinstance(job.compare, Table):
        expected = _table(job.compare, outputs, between)
    else:
        made = [row for rows in outputs.values() for row in rows]
        columns = _all_columns(job.compare, columns, made)
        judged = [name for name in columns if name not in job.compare.free]
        expected = replace(bag_of(outputs, judged, between=between), free=_free(job.compare))
        if left:
            sides = _sides(expected, list(outputs.values()), left)
    return Judged(job.compare, expected, None, columns, left, sides, written=how)


def _sides(
    expected: Expected, outputs: Sequence[Sequence[Row]], left: Sequence[str]
) -> tuple[Row, ...]:
    """Rows of the left side that are in every output, each time otherwise."""
    sure = {cell_of(row, left) for row in expected.must}
    cells = [{cell_of(row, left) for row in rows} for rows in outputs]
    some = {cell_of(row, left): {name: row.get(name) for name in left} for row in outputs[-1]}
    everywhere = set.intersection(*cells) - sure
    return tuple(row for cell, row in some.items() if cell in everywhere)


def _table(compare: Table, outputs: Mapping[str, Sequence[Row]], between: bool) -> Expected:
    """Keys of all outputs have to be there, with the values of one of them."""
    tables = [table_of(compare, rows) for rows in outputs.values()]
    least = tables[-1]
    must = [row for cell, row in least.items() if all(cell in table for table in tables)]
    optional = [row for table in tables for row in table.values()]
    if between:
        some = {cell: row for table in tables for cell, row in table.items() if cell not in least}
        optional += [nothing_of(row, compare.key) for row in some.values()]
    return Expected(must, optional, _free(compare), between=between)


def _batch(
    workload: JobWorkload,
    ask: Ask,
    chosen: Mapping[str, Sequence[Row]],
    job: Job,
) -> list[Row]:
    """Typed rows."""
    with temporary_folder("bettong-batch-") as folder:
        inputs = {}
        for number, (name, rows) in enumerate(chosen.items()):
            given = job.inputs[name]
            assert isinstance(given, StepInput)
            # Not by the input's name: Spark reads no file that begins with _ or a dot.
            path = folder / f"{number}.{given.file_format}"
            write_rows(path, given.file_format, given.schema, rows)
            inputs[name] = str(path)
        arguments = {"target": asdict(workload.target), "directory": str(folder), "inputs": inputs}
        try:
            found: list[Row] = ask(BATCH, arguments)
        except DriverError as e:
            raise VacuousError(
                f"{job.name}: its transform fails on plain frames: {e}: use oracle = Clean()"
            ) from e
        return found
