"""TARGET of ``bettong check-job``: ``file.py:Object`` or ``module:Object``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bettong.harness.queries.job.compare import Bag, OuterBag, Table
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.inputs import Recorded, StepInput, Topic
from bettong.harness.queries.job.made_rows import columns_of
from bettong.harness.queries.job.oracles import Clean, OnePerKey
from bettong.harness.queries.sink.loading import expect_attributes, load_object
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of


def load_job(target: str, *, fresh: bool = False) -> Job:
    """The job that a target names.

    Args:
        target: see the module.
        fresh: load the module again, so that nothing that it kept in memory is known any more.

    Raises UsageError, saying which target and what to do, when there is no such job.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(f"{target!r} is no target: write file.py:Object or module:Object")
    job = load_object(where, name, fresh)
    if not isinstance(job, Job):
        raise UsageError(
            f"{target} is {type(job).__name__}, not a job: derive it from bettong.harness.Job"
        )
    if not job.name:
        job.name = name
    _check(job, target)
    return job


def is_job(target: str) -> bool:
    """Whether a target is a job rather than a sink; raises UsageError when it cannot be loaded."""
    where, _, name = target.rpartition(":")
    return where not in ("", "format") and isinstance(load_object(where, name, False), Job)


def _check(job: Job, target: str) -> None:
    kind = type(job)
    builds = kind.build is not Job.build
    if not builds and (kind.transform is Job.transform or kind.write is Job.write):
        raise UsageError(f"{target}: needs transform and write, or build: see bettong.harness.Job")
    if kind.read is Job.read:
        raise UsageError(f"{target}: has no method read, which returns the rows of its output")
    expect_attributes(job, target)
    if not isinstance(job.inputs, Mapping) or not job.inputs:
        raise UsageError(
            f"{target}: has no inputs: write e.g. inputs = "
            '{"orders": Files("json", "id STRING, at TIMESTAMP")}'
        )
    for name, given in job.inputs.items():
        _check_input(job, target, name, given)
    if not isinstance(job.compare, Bag | Table | OuterBag):
        raise UsageError(
            f"{target}: compare is {job.compare!r}: write Bag(…), Table(…) or OuterBag(…)"
        )
    _check_oracle(job, target)


def _check_input(job: Job, target: str, name: str, given: Any) -> None:
    if not isinstance(given, StepInput | Recorded):
        raise UsageError(
            f"{target}: the input {name} is {given!r}: write Files(…), Topic(…), Rows(…) or "
            "Recorded(…)"
        )
    if isinstance(given, StepInput):
        try:
            _ = given.steps, given.schema
        except UsageError as e:
            raise UsageError(f"{target}: the input {name}: {e}") from e
    if isinstance(given, Topic):
        one_of(given.server, (*job.servers, *job.endpoints), f"{target}: server of {name}")


def _check_oracle(job: Job, target: str) -> None:
    oracle = job.oracle
    if isinstance(job.compare, OuterBag):
        left = one_of(job.compare.left, tuple(job.inputs), f"{target}: OuterBag's input")
        if not isinstance(job.inputs[left], StepInput):
            raise UsageError(f"{target}: OuterBag needs an input that is fed step by step")
    if isinstance(oracle, type):
        raise UsageError(f"{target}: oracle is a class: write {oracle.__name__}(…)")
    if isinstance(oracle, OnePerKey):
        given = job.inputs[given_of(job, oracle)]
        if not isinstance(given, StepInput):
            raise UsageError(f"{target}: OnePerKey needs an input that is fed step by step")
        for name in oracle.key:
            one_of(name, tuple(columns_of(given.schema)), f"{target}: OnePerKey's column")
    elif isinstance(oracle, str):
        if oracle != "batch":
            raise UsageError(
                f'{target}: oracle is {oracle!r}: write "batch", Clean(…), OnePerKey(…) or '
                "a function"
            )
        if not job.has_transform:
            raise UsageError(f'{target}: oracle = "batch" needs transform(env), apart from write')
        if any(isinstance(given, Recorded) for given in job.inputs.values()):
            raise UsageError(f'{target}: oracle = "batch" needs inputs that are fed step by step')
    elif not isinstance(oracle, Clean) and not callable(oracle):
        raise UsageError(f"{target}: oracle is {oracle!r}: see bettong.harness.Job")


def given_of(job: Job, oracle: OnePerKey) -> str:
    """The input that an output is deduplicated from; raises UsageError when it is not said."""
    if oracle.among:
        return one_of(oracle.among, tuple(job.inputs), "input")
    if len(job.inputs) > 1:
        raise UsageError(f"OnePerKey: say among= which of {', '.join(job.inputs)}")
    return next(iter(job.inputs))
