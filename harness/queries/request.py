"""What is asked about a sink or a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bettong.harness.queries.script import Script
from bettong.lineage.results import Guarantee
from bettong.lineage.search.loop import Budget


@dataclass(frozen=True)
class Request:
    """One question.

    Attributes:
        target: ``file.py:Object``, ``module:Object`` or ``format:NAME``.
        options: for ``format:NAME``.
        endpoints: overriding or adding to the sink's own.
        expect: the level asked for.
        faults: how many faults may happen together.
        window: faults fire in the first so many batches.
        budget: of the search.
        side_by_side: whether runs that share nothing go on at the same time.
        first: end with the first counterexample.
        only: ids of faults: run this one set and nothing else.
        real: every crash is SIGKILL.
        also: further questions: ``new-checkpoint``.
        out: where traces, counterexamples and the log of the search are kept, if anywhere.
        contract: what the target is: a sink or a job.
        clean_only: run it without faults only.
        script: what is judged in place of a job, if it is a script.
        replayed: the counterexample's file that this question comes from, if any.
    """

    target: str
    options: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    expect: Guarantee = "effectively-once"
    faults: int = 2
    window: int = 2
    budget: Budget = Budget(seconds=900.0)  # noqa: RUF009 - immutable
    side_by_side: bool = True
    first: bool = False
    only: tuple[str, ...] = ()
    real: bool = False
    also: tuple[str, ...] = ()
    out: Path | None = None
    replayed: Path | None = None
    contract: Literal["sink", "job"] = "sink"
    clean_only: bool = False
    script: Script | None = None
