"""Every single fault at every step, or every pair, run without asking any lineage: the judge of the
search.

The second fault of a pair fires at any step that the run with the first one takes after it has
fired, also while it recovers. What has been run is kept in ``exhaustive.jsonl``: killed and
started again, it goes on where it was.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.point import Topology
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.enumeration import each_step, faults_at
from bettong.harness.search.executor import impossible
from bettong.harness.search.ldfi import question, set_ending
from bettong.harness.search.leaves import is_within
from bettong.harness.search.occurrences import Reading, read_occurrences
from bettong.harness.search.read_run import what_came
from bettong.harness.search.system import system_of
from bettong.harness.search.trace_lineage import message_batches
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import Fault as BoundedFault
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget
from bettong.lineage.search.question_log import QuestionLog

LOG = "exhaustive.jsonl"
_NAMED = 20
_BLIND = ("not-injected", "unknown")


@dataclass(frozen=True, slots=True)
class Shown:
    """What one run has shown.

    Attributes:
        ids: of its faults.
        outcome: as of a run; ``impossible`` when one fault's moment never comes once the other has
            fired, or has nothing left to lose.
        then: the faults that can fire after a single one has.
    """

    ids: frozenset[str]
    outcome: str
    then: tuple[Fault, ...] = ()


@dataclass(slots=True)
class Everything:
    """All runs of a fault space.

    Attributes:
        reported: what has been run.
        left: how many schedules have not been run.
    """

    reported: list[Shown] = field(default_factory=list)
    left: int = 0

    def of(self, *outcomes: str) -> list[str]:
        """The schedules with these outcomes."""
        return sorted(" and ".join(sorted(t.ids)) for t in self.reported if t.outcome in outcomes)

    def to_dict(self, agrees: bool | None) -> dict[str, Any]:
        """For a result's details; ``agrees``: with the search, None when nobody can say yet."""
        violations = self.of("violation")
        unclear = self.of(*_BLIND)
        return {
            "runs": len(self.reported),
            "left": self.left,
            "outcomes": dict(sorted(Counter(t.outcome for t in self.reported).items())),
            "violations": violations[:_NAMED],
            "violated": len(violations),
            "not_judged": unclear[:_NAMED],
            "agrees": agrees,
        }


def run_everything(
    campaign: Campaign,
    reach: SearchBounds,
    budget: Budget = Budget(),  # noqa: B008 - immutable
) -> Everything:
    """Run every single fault of the search's kinds in its batches, and every pair within its
    bounds if pairs are asked for, in a random order that is the same each time.

    Raises UsageError when the folder has the log of another question.
    """
    return _Space(campaign, reach, budget).run()


class _Space:
    def __init__(self, campaign: Campaign, reach: SearchBounds, budget: Budget) -> None:
        self._campaign = campaign
        self._reach = reach = reach.over(campaign.scenario)
        assert reach.batches is not None
        self._batches = reach.batches
        self._budget = budget.begun()
        self._fresh = 0
        asked = f"{question(campaign, reach)}, {reach.exhaustive}"
        self._log = _Log(campaign.out / LOG, asked, system_of(campaign.scenario))
        self._topology: Topology = campaign.backend.topology(campaign.scenario)
        self._kinds = frozenset(kind for kind, most in reach.bounds.at_most.items() if most)

    def run(self) -> Everything:
        with closing(self._log):
            return self._run()

    def _run(self) -> Everything:
        found = Everything()
        set_ending(self._campaign, self._reach)
        clean = self._campaign.run(Schedule())
        if clean.again_changed:
            self._campaign.again = False
            clean = self._campaign.run(Schedule())
        if clean.outcome != "good":
            raise UsageError(f"the clean run is {clean.outcome}: {clean.note}")
        singles = each_step(clean.events, self._batches, self._topology, self._kinds)
        self._all(singles, found)
        if self._reach.exhaustive == "pairs" and not found.left:
            first = {schedule.ids[0]: schedule.faults[0] for schedule in singles}
            self._all(self._pairs(found.reported, first), found)
        return found

    def _all(self, schedules: Sequence[Schedule], found: Everything) -> None:
        known = [self._log.known.get(frozenset(s.ids)) for s in schedules]
        found.reported += [reported for reported in known if reported is not None]
        missing = [s for s, k in zip(schedules, known, strict=True) if k is None]
        random.Random(self._campaign.seed).shuffle(missing)
        size = self._campaign.parallel
        for first in range(0, len(missing), size):
            if self._budget.spent(self._fresh):
                found.left += len(missing) - first
                return
            for seen in self._campaign.run_all(missing[first : first + size]):
                reported = self._read(seen)
                self._campaign.forget(seen)
                self._log.add(reported)
                found.reported.append(reported)
                self._fresh += 1

    def _pairs(self, singles: Sequence[Shown], first: Mapping[str, Fault]) -> list[Schedule]:
        """Each pair that the bounds allow, once. Where a single fault breaks the system, a second
        one says nothing more."""
        pairs: dict[frozenset[str], Schedule] = {}
        for reported in singles:
            if reported.outcome != "good":
                continue
            (id,) = reported.ids
            for fault in reported.then:
                both = (first[id], fault)
                bounded = [
                    BoundedFault(f.id, f.counts_as(self._kinds), place=next(iter(f.nodes), ""))
                    for f in both
                ]
                if fault.id != id and self._reach.bounds.allow(bounded):
                    pairs.setdefault(frozenset(f.id for f in both), Schedule(both))
        return list(pairs.values())

    def _read(self, seen: RunRecord) -> Shown:
        reading = read_occurrences(seen.events)
        outcome: str = seen.outcome
        if impossible(seen, what_came(reading)) or left_nothing(seen, reading):
            outcome = "impossible"
        then = tuple(self._then(seen, reading)) if len(seen.schedule.faults) == 1 else ()
        return Shown(frozenset(seen.schedule.ids), outcome, then)

    def _then(self, seen: RunRecord, reading: Reading) -> Iterator[Fault]:
        """The faults that can fire when the only one of this run has, or after that."""
        (own,) = seen.schedule.faults
        start = own.points[0]
        batch_of = message_batches(seen.events)
        fired_at = next((s.position for s in reading.injected if s.fault.id == own.id), None)
        if fired_at is None:
            return
        for o in reading.occurrences:
            if not is_within(o.step, batch_of, self._batches):
                continue
            event = seen.events[o.begun]
            for fault in faults_at(event, self._topology, self._kinds, o.number):
                point = fault.points[0]
                at = o.begun if point.phase == "before" else o.ended
                if at is not None and (at > fired_at or point == start):
                    yield fault


def left_nothing(seen: RunRecord, reading: Reading) -> bool:
    """Whether all that did not fire in a run was to lose a request, or its reply, while an end
    of its link was dead of the other fault, or on the connection that had died with it: nothing was
    left to be lost."""
    deaths = [(node, s.position) for s in reading.injected for node in s.fault.kills]
    left = [f for f in seen.schedule.faults if f.id in seen.not_fired]

    def void(loss: Fault) -> bool:
        (at, *_) = loss.points
        return loss.loses and any(
            o.begun < _connected(reading, node, link, since)
            and (o.ended is None or since < o.ended)
            for o in reading.occurrences
            if (o.step, o.number) == (at.step, at.occurrence)
            for link in loss.links
            for node, since in deaths
            if node in link.split("->")
        )

    return seen.outcome == "not-injected" and all(map(void, left))


def _connected(reading: Reading, node: str, link: str, since: int) -> float:
    """From where in the trace a link of a node that was killed can carry requests again: the node
    is there, and a first request has found out that the old connection is gone."""
    back = min(
        (r.position for r in reading.restarts if r.node == node and r.position > since),
        default=math.inf,
    )
    first = min(
        (o.begun for o in reading.occurrences if o.link == link and o.begun > since),
        default=math.inf,
    )
    return max(back, first + 1)


class _Log:
    """What has been run, in a file of JSON lines."""

    def __init__(self, path: Path, asked: str, system: str) -> None:
        self.known: dict[frozenset[str], Shown] = {}
        self._log = QuestionLog(path, asked, self._take, system)

    def add(self, reported: Shown) -> None:
        """Keep what a run has shown."""
        self.known[reported.ids] = reported
        value = {
            "ids": sorted(reported.ids),
            "outcome": reported.outcome,
            "then": Schedule(reported.then).to_dict()["faults"],
        }
        self._log.add(value)

    def _take(self, value: dict[str, Any]) -> bool:
        then = Schedule.from_dict({"faults": value["then"]}).faults
        reported = Shown(frozenset(value["ids"]), value["outcome"], then)
        if reported.outcome not in _BLIND:
            self.known[reported.ids] = reported
        return True

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def compare(whole: Everything, result: Result) -> Result:
    """Say in the result's details whether the two agree; if they do not, the verdict is
    unknown."""
    broken, unclear = whole.of("violation"), whole.of(*_BLIND)
    agrees = bool(broken) == (result.verdict == "invalid") and not unclear
    result = replace(result, details={**result.details, "exhaustive": whole.to_dict(agrees)})
    if agrees:
        return result
    named = ", ".join([*broken, *unclear][:3]) or "it found nothing broken"
    reason = f"the search and the whole space do not agree: {named}"
    return replace(result, verdict="unknown", guarantee="none", reason=reason)


def unfinished(campaign: Campaign, whole: Everything) -> Result:
    """The result when the budget has ended before everything was run."""
    reason = f"the budget ended with {whole.left} schedules of the whole space not run"
    result = campaign.result("unknown", reason)
    return replace(result, details={**result.details, "exhaustive": whole.to_dict(None)})
