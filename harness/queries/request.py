"""What is asked about a sink or a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from bettong.harness.queries.script import Script
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.results import GUARANTEES, Guarantee
from bettong.lineage.search.loop import Budget

_ALSO = ("new-checkpoint",)
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "target": (str, "a text, such as 'mysink.py:MySink'"),
    "options": (Mapping, "a mapping of texts"),
    "endpoints": (Mapping, "a mapping of names to HOST:PORT"),
    "budget": (Budget, "a Budget, such as Budget.parse('5m')"),
    "only": ((tuple, list), "a tuple of ids of faults"),
    "also": ((tuple, list), "a tuple of questions"),
    "out": ((Path, type(None)), "a Path"),
}


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

    Raises UsageError for what cannot be asked: a search without faults would find that all is well.
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

    def __post_init__(self) -> None:
        for name, (kinds, right) in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds):
                raise UsageError(f"{name}={value!r}: give {right}")
        for name in ("faults", "window"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise UsageError(f"{name}={value!r}: give a whole number, at least 1")
        one_of(self.expect, GUARANTEES, "level")
        for question in self.also:
            one_of(question, _ALSO, "question")
        if self.also and self.only:
            raise UsageError(
                f"{self.also[0]} is not asked beside one fault set ({self.only[0]}), which is run "
                "and nothing else: leave out one of the two"
            )


def ask(target: str, **more: Any) -> Request:
    """A question in a call of Python's; raises UsageError for an argument that there is none of."""
    known = [f.name for f in fields(Request)]
    for name in more:
        one_of(name, known, "argument")
    return Request(target, **more)
