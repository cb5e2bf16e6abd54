"""A process that searches one mutant until a fault shows its mistake.

``python -m bettong.scenarios.benchmarks.mutants.judge`` takes a question as JSON from its input and
prints the finding as JSON. All processes of the runs load the mutated package; this one, which
judges them, the right one. What is found is tried on the right package too: what breaks that as
well shows nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from bettong.harness.api import load_scenario
from bettong.harness.backends.base import Backend
from bettong.harness.backends.local import LocalBackend
from bettong.harness.conductor.order import FiringOrder
from bettong.harness.faults.schedule import Schedule
from bettong.harness.queries.check import check_sink
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import bounds_of
from bettong.harness.search.ldfi import search_scenario
from bettong.lineage.errors import BettongError
from bettong.lineage.search.loop import Budget
from bettong.scenarios.benchmarks.mutants.ranking import Trail
from bettong.scenarios.benchmarks.mutants.turn import OverError, Turn

Status = Literal["killed", "survived", "aborted", "fails without a fault"]
LIMITS = Limits(idle_s=15.0, wall_s=60.0)
"""Of a run, most of which end within a second: what takes longer does not end."""
_AT_A_TIME = 2
"""Runs of one search: they wait more than they work."""
_TRIES = 3
"""What hangs on a moment need not show again at once."""
_SLICE = 16
"""Runs of a scenario's search before another scenario has its turn."""
C = TypeVar("C", bound=Campaign)
_OWN = os.environ.get("PYTHONPATH", "")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a mutant.

    Attributes:
        package: the folder to be put in front, as PYTHONPATH.
        scenarios: that run the mistake, in the order in which they are to be searched.
        sinks: targets of check-sink, likewise.
        bounds: of the search, by name.
        seconds: how long all of it may take.
        trails: where the scenarios run the mistake: by that is decided what is put up first.
    """

    package: str
    scenarios: tuple[str, ...]
    sinks: tuple[str, ...]
    bounds: str
    seconds: float
    trails: Mapping[str, Trail] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a mutant.

    Attributes:
        shown_by: the scenario or sink.
        faults: that show it.
        anomalies: what a reader sees, by kind.
        runs: until it was found, or in all.
        seconds: likewise, of wall time; processes that had to be started first included.
        complete: for a survivor: every search has come to its end.
        note: why it was aborted, or why its searches have not ended.
    """

    status: Status
    shown_by: str = ""
    faults: tuple[str, ...] = ()
    anomalies: tuple[str, ...] = ()
    runs: int = 0
    seconds: float = 0.0
    complete: bool = False
    note: str = ""


class _ShownError(Exception):
    """A run under faults went wrong: no more needs to be run."""

    def __init__(self, seen: RunRecord) -> None:
        self.seen = seen


@dataclass
class _Hunt(Campaign):
    """A campaign that ends with the first violation that faults have led to.

    Attributes:
        turn: when it may go on.
    """

    turn: Turn = field(default_factory=Turn)

    @property
    def reads_beside(self) -> bool:
        return False  # there are more searches than cores

    def run(
        self, schedule: Schedule, name: str | None = None, order: FiringOrder | None = None
    ) -> RunRecord:
        with self.turn.a_run():
            seen = super().run(schedule, name, order)
        if seen.outcome == "violation" and len(seen.not_fired) < len(schedule.faults):
            raise _ShownError(seen)
        return seen


def judge(question: Question) -> Finding:
    """Search the scenarios, by turns, then the sinks, one after the other."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bettong-mutant-") as folder:
        found = _found(question, Path(folder), began)
    return replace(found, seconds=round(time.monotonic() - began, 1))


def _found(question: Question, folder: Path, began: float) -> Finding:
    until = began + question.seconds
    last: dict[str, Finding] = {}
    with _package(question.package), contextlib.ExitStack() as stack:
        scenarios = [load_scenario(name) for name in question.scenarios]
        backends = [
            stack.enter_context(_backend(scenarios)) for _ in range(_AT_A_TIME if scenarios else 0)
        ]
        hunts = [_campaign(_Hunt, backends, s, folder / s.name) for s in scenarios]
        for found in stack.enter_context(contextlib.closing(_by_turns(hunts, question, until))):
            if found.status != "survived":
                return _in_all(found, last)
            last[found.shown_by] = found
        for scenario in scenarios:
            if scenario.name not in last:
                last[scenario.name] = _run_alone(backends, scenario, folder / scenario.name)
                if last[scenario.name].status != "survived":
                    return _in_all(last[scenario.name], last)
        for target in question.sinks:
            last[target] = _checked(target, until - time.monotonic())
            if last[target].status != "survived":
                return _in_all(last[target], last)
    notes = [one.note for one in last.values() if not one.complete]
    return _in_all(Finding("survived", complete=not notes, note="; ".join(notes)), last)


def _by_turns(
    hunts: Sequence[_Hunt], question: Question, until: float
) -> Generator[Finding, None, None]:
    """Search by turns; what was found after each of them. Closed, it ends all searches."""
    over: set[int] = set()
    searches: dict[int, Future[Finding]] = {}
    with ThreadPoolExecutor(max(1, len(hunts))) as threads:
        try:
            for number in turns(len(hunts), over):
                if time.monotonic() >= until:
                    return
                hunt = hunts[number]
                if number not in searches:
                    searches[number] = threads.submit(_searched, hunt, question, until)
                search = searches[number]
                hunt.turn.have(_SLICE, search)
                if search.done():
                    over.add(number)
                    yield search.result()
                else:
                    yield _not_at_its_end(hunt)
        finally:
            for hunt in hunts:
                hunt.turn.end()


def turns(scenarios: int, over: AbstractSet[int]) -> Iterator[int]:
    """Which scenario is searched next, by its number: the first one every other time, for it is as
    good as any, and between that each of the others, for some mistakes show in one of them alone.
    Those that are over have no turn."""
    while len(over) < scenarios:
        for number in range(min(1, scenarios - 1), scenarios):
            for one in dict.fromkeys((0, number)):
                if one not in over:
                    yield one


def _in_all(finding: Finding, last: Mapping[str, Finding]) -> Finding:
    """A finding with the runs of all scenarios, of which these were the last findings."""
    others = sum(one.runs for name, one in last.items() if name != finding.shown_by)
    return replace(finding, runs=others + finding.runs)


def _backend(scenarios: Sequence[Scenario]) -> LocalBackend:
    kafka = any("kafka" in scenario.servers for scenario in scenarios)
    return LocalBackend(runner="in-process", kafka=kafka)


@contextlib.contextmanager
def _package(folder: str) -> Iterator[None]:
    """Have processes that are started load what is in a folder; nothing where there is none."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _searched(campaign: _Hunt, question: Question, until: float) -> Finding:
    """Search a scenario, as its turns allow."""
    scenario = campaign.scenario
    trail = question.trails.get(scenario.name, Trail())
    try:
        result = search_scenario(
            campaign,
            bounds_of(question.bounds),
            budget=Budget(seconds=max(1.0, until - time.monotonic())),
            likely=trail.first,
        )
    except OverError:
        return _not_at_its_end(campaign)
    except _ShownError as shown:
        return _shown(shown.seen, campaign)
    except BettongError as e:
        status: Status = "aborted" if campaign.runs else "fails without a fault"
        return Finding(status, scenario.name, runs=len(campaign.runs), note=str(e)[:300])
    if campaign.observed[0].again_changed and result.verdict == "invalid":
        kinds = tuple(sorted({anomaly.kind for anomaly in campaign.observed[0].anomalies}))
        return Finding("killed", scenario.name, (), kinds, len(campaign.runs), note=result.reason)
    if campaign.runs[0].outcome != "good" and not campaign.observed[0].again_changed:
        return Finding("fails without a fault", scenario.name, runs=len(campaign.runs))
    return Finding(
        "survived",
        scenario.name,
        runs=len(campaign.runs),
        complete=result.verdict == "valid" and result.coverage.complete,
        note="" if result.verdict == "valid" else f"{scenario.name}: {result.reason}"[:300],
    )


def _not_at_its_end(hunt: _Hunt) -> Finding:
    name = hunt.scenario.name
    return Finding("survived", name, runs=len(hunt.runs), note=f"{name}: not searched to its end")


def _run_alone(backends: Sequence[LocalBackend], scenario: Scenario, out: Path) -> Finding:
    """Where no time is left for a search: what one run without a fault shows does not count."""
    campaign = _campaign(Campaign, backends, scenario, out)
    try:
        outcome = campaign.run(Schedule()).outcome
    except BettongError as e:
        return Finding("fails without a fault", scenario.name, runs=1, note=str(e)[:300])
    if outcome == "violation":
        return Finding("fails without a fault", scenario.name, runs=1)
    return Finding("survived", scenario.name, runs=1, note=f"{scenario.name}: not searched")


def _shown(seen: RunRecord, campaign: Campaign) -> Finding:
    """A kill, unless it was seen only once, or the right package breaks under these faults too."""
    scenario, out = campaign.scenario, campaign.out
    found = Finding(
        "killed",
        scenario.name,
        seen.schedule.ids,
        tuple(sorted({anomaly.kind for anomaly in seen.anomalies})),
        len(campaign.runs),
    )
    once_more = _campaign(Campaign, [campaign.backend], scenario, out / "again")
    once_more.again, once_more.power_cut = bool(seen.again_changed), campaign.power_cut
    again = _of_several(once_more, seen.schedule)
    if again != "violation":
        return replace(found, status="aborted", note=f"it broke once, and was {again} then")
    with _package(_OWN), _backend([scenario]) as backend:
        right = _campaign(Campaign, [backend], scenario, out / "right")
        right.again, right.power_cut = bool(seen.again_changed), campaign.power_cut
        control = _of_several(right, seen.schedule)
    if control == "violation":
        note = "the right package breaks under these faults as well"
        return replace(found, status="aborted", note=note)
    return found


def _of_several(campaign: Campaign, schedule: Schedule) -> str:
    """What comes of the faults: a violation where some try shows one."""
    for _ in range(_TRIES):
        outcome = campaign.run(schedule).outcome
        if outcome == "violation":
            break
    return outcome


def _campaign(kind: type[C], backends: Sequence[Backend], scenario: Scenario, out: Path) -> C:
    first, *beside = backends
    campaign = kind(first, scenario, out, scenario.messages(), limits=LIMITS, beside=beside)
    campaign.replay = False  # as the search has it
    return campaign


def _checked(target: str, left: float) -> Finding:
    try:
        result = check_sink(target, budget=Budget(seconds=max(1.0, left)))
    except BettongError as e:
        return Finding("aborted", target, note=str(e)[:300])
    runs = result.coverage.executions
    if result.verdict == "invalid":
        found = result.counterexamples[0] if result.counterexamples else None
        if found is None or not found.faults:
            return Finding("fails without a fault", target, runs=runs)
        kinds = tuple(sorted({anomaly.kind for anomaly in found.anomalies}))
        return Finding("killed", target, found.faults, kinds, runs)
    note = "" if result.verdict == "valid" else f"{target}: {result.reason}"[:300]
    return Finding("survived", target, runs=runs, complete=result.verdict == "valid", note=note)


def main() -> None:
    """The command line."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    print(msgspec.json.encode(judge(question)).decode())


if __name__ == "__main__":
    main()
