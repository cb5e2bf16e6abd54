"""The one stream of events that everything that judges emits: terminal, ``--json``, the pytest
plugin, reports and exit codes consume it, and nothing else.

A question begins with :class:`Started` and ends with :class:`Finished`; what comes between them
belongs to it. Handlers are called by the thread in which something happens, also several at a
time where runs go on side by side, and must return soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bettong.harness.faults.step_ids import FAULT
from bettong.lineage.results import Counterexample, Result, Run
from bettong.lineage.search.events import Advanced, Executed, SearchEvent
from bettong.lineage.search.events import Handler as SearchHandler
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Started:
    """A question is being answered; ``subject`` is the name of what is judged."""

    subject: str
    kind: Literal["scenario", "sink", "job", "protocol", "check"]


@dataclass(frozen=True, slots=True)
class Preparing:
    """Something that runs need is being started, such as Spark or a database."""

    what: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run has begun.

    Attributes:
        run: the run's name; other events of it carry the same.
        faults: ids of those that are planned.
    """

    run: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepTaken:
    """A process of a run was at a step."""

    run: str
    step: TraceEvent


@dataclass(frozen=True, slots=True)
class FaultInjected:
    """A fault is in force, or has fired; the evidence is the proof."""

    run: str
    fault: str
    evidence: str


@dataclass(frozen=True, slots=True)
class RunJudged:
    """A run has ended and was judged.

    Attributes:
        judged: its line in the result.
        number: how many runs of the question there are with it.
        planned: how many there will be, where that is known.
        schedule: its faults as a schedule's file has them, where they can be written as one.
        outputs: ids and contents that a reader saw, in their order, where the run keeps them.
    """

    run: str
    judged: Run
    number: int
    planned: int | None = None
    schedule: Mapping[str, Any] = field(default_factory=dict)
    outputs: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class SearchAdvanced:
    """How far a lineage-driven search has come; see
    :class:`bettong.lineage.search.events.Advanced`."""

    executions: int
    violations: int
    hypotheses: int
    pruned: int


@dataclass(frozen=True, slots=True)
class ViolationConfirmed:
    """A violation showed again when every crash was a SIGKILL, while the search goes on.

    Attributes:
        faults: ids of the set.
        kinds: of its anomalies.
    """

    faults: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CounterexampleFound:
    """A minimal set of faults that breaks the system, with what happens under it."""

    counterexample: Counterexample


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """A stored history is being read: so many of its records were."""

    history: str
    records: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that a user should know, and that changes no answer."""

    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer; ``out`` is the folder that it is kept in, if it is kept."""

    result: Result
    out: Path | None = None


Event = (
    Started
    | Preparing
    | RunStarted
    | StepTaken
    | FaultInjected
    | RunJudged
    | SearchAdvanced
    | ViolationConfirmed
    | CounterexampleFound
    | RecordsRead
    | Warned
    | Finished
)
Handler = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The handler of those who do not want to know."""


def broadcast(*handlers: Handler) -> Handler:
    """A handler that hands each event to all of these, in their order."""

    def handle(event: Event) -> None:
        for handler in handlers:
            handler(event)

    return handle


def steps_of(run: str, on_event: Handler) -> Callable[[TraceEvent], None]:
    """What a run's trace says, as events of this stream."""

    def handle(event: TraceEvent) -> None:
        on_event(StepTaken(run, event))
        if event.step.startswith(FAULT):
            evidence = str(event.detail.get("evidence", ""))
            on_event(FaultInjected(run, event.step.removeprefix(FAULT), evidence))

    return handle


def search_events(on_event: Handler) -> SearchHandler:
    """What a search of :mod:`bettong.lineage.search` does, as events of this stream, where nobody
    else reports its runs."""
    progress = search_progress(on_event)

    def handle(event: SearchEvent) -> None:
        if isinstance(event, Executed):
            on_event(RunJudged(str(event.number), event.execution.to_run(), event.number))
        progress(event)

    return handle


def search_progress(on_event: Handler) -> SearchHandler:
    """How far a search of :mod:`bettong.lineage.search` has come, as events of this stream."""

    def handle(event: SearchEvent) -> None:
        if isinstance(event, Advanced):
            advanced = SearchAdvanced(
                event.executions, event.violations, event.hypotheses, event.pruned
            )
            on_event(advanced)

    return handle
