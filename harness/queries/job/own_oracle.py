"""The user's own function that says which rows an output should have."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bettong.harness.queries.job.compare import Table, expect_made
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.host import typed
from bettong.harness.queries.job.inputs import StepInput
from bettong.harness.queries.job.rules import Row, cell_of, shown
from bettong.harness.queries.job.typed import bare
from bettong.harness.queries.sense import VacuousError
from bettong.harness.queries.sink.rows import rows_of
from bettong.lineage.errors import UsageError
from bettong.lineage.user_code import in_one_line


def rows_by_oracle(job: Job) -> dict[str, list[Row]]:
    """The typed rows that it gives, with the closing rows and without. Raises UsageError, in words,
    when these are no rows, and VacuousError when there are none."""
    fed = {n: given for n, given in job.inputs.items() if isinstance(given, StepInput)}
    try:
        found = _rows(job.oracle, {name: given.rows for name, given in fed.items()})
    except Exception as e:
        raise UsageError(
            f"{job.name}: its oracle fails: {in_one_line(e)}: it is a function of one argument, "
            "the rows of each input by name, and returns the rows of the output, dicts"
        ) from e
    if not found:
        raise VacuousError(f"{job.name}: its oracle expects no row: nothing can be concluded")
    expect_made(job.name, job.compare, found, "its oracle")
    if isinstance(job.compare, Table):
        _expect_keys(job, job.compare, [bare(row) for row in found])
    outputs = {"without the closing row": found}
    if any(given.closing is not None for given in fed.values()):
        every = {name: [r for step in given.steps for r in step] for name, given in fed.items()}
        with contextlib.suppress(Exception):  # it may know nothing of rows that only close
            outputs = {"all": _rows(job.oracle, every), **outputs}
    return outputs


def _rows(oracle: Any, inputs: Mapping[str, Sequence[Row]]) -> list[Row]:
    return [typed(row) for row in rows_of(_called(oracle, inputs), "it")]


def _called(oracle: Any, inputs: Mapping[str, Sequence[Row]]) -> Any:
    """A function that stands in the class is no method, unless it takes the job as well."""
    function = getattr(oracle, "__func__", None)
    if function is not None and len(inspect.signature(function).parameters) == 1:
        return function(inputs)
    return oracle(inputs)


def _expect_keys(job: Job, compare: Table, rows: Sequence[Row]) -> None:
    times = Counter(cell_of(row, compare.key) for row in rows)
    for row in rows:
        if times[cell_of(row, compare.key)] > 1:
            raise UsageError(
                f"{job.name}: its oracle gives several rows with {shown(row, compare.key)}, which "
                "Table(key=…) has once: give one row of each key, or compare = Bag(…)"
            )
