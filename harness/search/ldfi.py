"""Lineage-driven fault injection over a real scenario: the loop of
:mod:`bettong.lineage.search.loop` with processes, proxies and Spark behind it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

from bettong.harness.checkers import guarantee_of
from bettong.harness.events import CounterexampleFound
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import CRASH_MODEL, Campaign
from bettong.harness.runs.spared_jvm import spared_jvms
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.describe import as_they_fired, counterexample_words
from bettong.harness.search.durable import MOST_WAYS
from bettong.harness.search.executor import Likely, ScenarioExecutor
from bettong.harness.search.lasting import lasting
from bettong.harness.search.mechanism import mechanism
from bettong.harness.search.system import system_of
from bettong.lineage.faults import FaultSet
from bettong.lineage.results import Counterexample, Guarantee, Result, tool_version
from bettong.lineage.search.events import Executed, SearchEvent
from bettong.lineage.search.executor import Execution, SideBySide
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import Budget, search
from bettong.lineage.trace import read_trace

LOG = "search.jsonl"
_SAMPLE = 3
_ONCE_MORE = 8
_TO_BLAME = 100
"""Where the start after the last batch breaks it without a fault, so many runs look for one that
tells more."""
_REPLAYS = 2
_UNSTEADY = (
    f" In {_REPLAYS} more runs with the same faults nothing was wrong: it hangs on how far others "
    "have come when they fire, which is up to the clock."
)


def search_scenario(
    campaign: Campaign,
    reach: SearchBounds,
    *,
    budget: Budget = Budget(),  # noqa: B008 - immutable
    likely: Likely = lambda _: (),
) -> Result:
    """Search for the smallest fault sets that break a scenario.

    ``likely``: gives fault sets that are put up before others of their size, if they are
    hypotheses: those that have broken the scenario before, or that hit what was changed.

    The search writes each run to ``search.jsonl`` in the campaign's folder as soon as it is judged
    and, started again with the same question about the same system, goes on where it was. Raises
    UsageError when that file belongs to another question, BettongError when the system cannot be
    started.
    """
    reach = reach.over(campaign.scenario)
    set_ending(campaign, reach)
    executor = ScenarioExecutor(campaign, reach.batches, reach.bounds, likely)
    with closing(executor), lasting() as learned:

        def on_event(event: SearchEvent) -> None:
            executor.on_event(event)
            if isinstance(event, Executed):
                learned()

        findings = search(
            SideBySide(executor.attempt, lambda: campaign.parallel),
            reach.bounds,
            budget=budget,
            find_all=reach.find_all,
            log=campaign.out / LOG,
            question=question(campaign, reach),
            system=system_of(campaign.scenario),
            on_event=on_event,
            canonical=executor.equivalence.canonical,
            alike=executor.equivalence.alike,
            smallest_first=True,
            suggest=executor.suggest,
            ahead=executor.suggest_pairs,
            settle=executor.settled,
            enough=lambda: not executor.starts_again and len(campaign.runs) >= _TO_BLAME,
            once_more=_ONCE_MORE,
        )
        check_tried(findings, reach)
        sampled = check_equivalence(executor, findings, reach, campaign.seed)
        _check_start(executor, findings)
        unsteady = {s for s in findings.minimal if _is_unsteady(executor, s)}
    return _result(campaign, executor, findings, reach, sampled, unsteady)


def set_ending(campaign: Campaign, reach: SearchBounds) -> None:
    """Have the runs of a search end with a fault that is within its bounds."""
    campaign.replay = False  # a crash right before commits/N is among the hypotheses
    campaign.power_cut = reach.storage > 0
    campaign.again = reach.crashes > 0 or campaign.power_cut


def check_tried(findings: Findings, reach: SearchBounds) -> None:
    """A search that has had no fault to fire says nothing of faults."""
    if findings.verdict != "valid" or any(e.schedule for e in findings.executions):
        return
    findings.complete = False
    findings.conclude(
        "unknown",
        f"nothing that can happen to it is within the bounds ({reach.words()}): no fault was "
        "tried; give wider bounds, such as --bounds quick, or --faults none for runs without any",
    )


def _check_start(executor: ScenarioExecutor, findings: Findings) -> None:
    """Where the start of every node after the last batch breaks what no fault has broken, that is
    the answer. Runs with faults went without it: each of these would have been blamed for it."""
    if executor.starts_again or findings.verdict == "invalid":
        return
    execution = executor.run_to_start()
    if execution.outcome != "violation":
        findings.conclude(
            "unknown",
            "that every node is started again after the last batch has broken it once only",
        )
        return
    findings.executions = [execution, *findings.executions]
    findings.minimal = [execution.schedule]
    findings.complete = False
    findings.conclude(
        "invalid", "every node started again after the last batch breaks it, without a fault"
    )


def _is_unsteady(executor: ScenarioExecutor, schedule: FaultSet) -> bool:
    """Whether nothing is wrong when these faults, which have shown something, are replayed. Where
    that cannot be seen, for want of time or as a fault does not fire, it is not said."""
    if not schedule or executor.campaign.limits.over:
        return False
    return all(executor.run(schedule).outcome == "good" for _ in range(_REPLAYS))


def question(campaign: Campaign, reach: SearchBounds) -> str:
    """What the log is of: anything that changes the answer is in it."""
    sent = b"\n".join(b"\n".join([s.encode(), *m]) for s, m in campaign.messages.items())
    digest = blake2b(sent, digest_size=8).hexdigest()
    return (
        f"{campaign.scenario.name}, {campaign.expected}, input {digest}, {reach.words()}, "
        f"options {sorted(campaign.options.items())}, bettong {tool_version()}"
    )


def check_equivalence(
    executor: ScenarioExecutor, findings: Findings, reach: SearchBounds, seed: int
) -> list[Execution]:
    """Run a few of the fault sets that were folded away, and of the pairs that no known way
    suffers from: they too must be good. One that shows nothing is run once more."""
    if findings.verdict != "valid":
        return []
    drawn = random.Random(seed)
    equivalence = executor.equivalence
    moved = equivalence.stand_ins if reach.crashes else {}
    alone = (frozenset({crash}) for crash in moved if crash in equivalence.clean)
    folded = sorted({*equivalence.folded, *alone}, key=sorted)
    chosen = drawn.sample(folded, min(_SAMPLE, len(folded)))
    chosen += _untried_pairs(findings, reach, drawn)
    sampled = []
    for schedule in chosen:
        execution = executor.run(schedule)
        sampled.append(executor.run(schedule) if execution.blind else execution)
    findings.executions += sampled
    unjudged = [e for e in sampled if e.outcome == "unknown"]
    if executor.campaign.limits.over and any(e.blind for e in sampled):
        findings.complete = False
        findings.conclude(
            "unknown", "the budget ended while fault sets taken to be the same as others were run"
        )
    elif unjudged:
        names = ", ".join(sorted(unjudged[0].schedule))
        findings.complete = False
        findings.conclude(
            "unknown",
            f"{names}, taken to be the same as what was run, could not be judged: "
            f"{unjudged[0].note}",
        )
    for execution in sampled:
        if execution.outcome == "violation":
            findings.minimal = [execution.schedule]
            findings.complete = False
            findings.conclude(
                "invalid",
                f"{', '.join(sorted(execution.schedule))} breaks it, "
                "although it was taken to be the same as what does not",
            )
    return sampled


def _untried_pairs(findings: Findings, reach: SearchBounds, drawn: random.Random) -> list[FaultSet]:
    tried = {execution.schedule for execution in findings.executions}
    faults = findings.baseline.lineage.faults
    pairs = [
        frozenset({a.id, b.id})
        for a, b in combinations(sorted(faults.values(), key=lambda fault: fault.id), 2)
        if reach.bounds.allow((a, b)) and frozenset({a.id, b.id}) not in tried
    ]
    return drawn.sample(pairs, min(_SAMPLE, len(pairs)))


def _result(
    campaign: Campaign,
    executor: ScenarioExecutor,
    findings: Findings,
    reach: SearchBounds,
    sampled: Sequence[Execution],
    unsteady: Collection[FaultSet],
) -> Result:
    broken = [e for e in findings.executions if e.outcome == "violation"]
    shown = findings.execution(findings.minimal[0]).anomalies if findings.minimal else ()
    equivalence = executor.equivalence
    details = (e.details for e in findings.executions)
    spared = [found["jvm_spared"] for found in details if "jvm_spared" in found]
    assumptions = [
        CRASH_MODEL,
        *spared_jvms(spared),
        *campaign.backend.limits,
        f"bounds: {reach.words()}",
        "how far batches behind these have come when a fault fires is up to the clock",
    ]
    if reach.storage:
        assumptions.append(
            "power cuts at the first and the last moment at which the same is not durable, each in "
            f"the {MOST_WAYS} ways that lose the most, or in all that have names"
        )
    if equivalence.stand_ins:
        assumptions.append(
            f"{len(equivalence.stand_ins)} crashes are taken for a later one of their node, "
            "before which it has only read, and asked nobody"
        )
    if equivalence.folded:
        assumptions.append(
            f"{len(equivalence.folded)} fault sets were not run because one that is the same was "
            "(same durable facts when the first fault fired, same steps after it; or the same on a "
            "server's disk when the second one fires, same steps of its life before, of all after)"
        )
    if sampled:
        held = sum(1 for e in sampled if e.outcome == "good")
        assumptions.append(
            f"{held} sets of what was so left out, and of pairs of which no known way suffers, "
            f"were run as a check and held{_not_injected(sampled)}"
        )
    impossible = sum(1 for e in findings.executions if e.details.get("impossible"))
    if impossible:
        assumptions.append(
            f"{impossible} fault sets cannot happen: one fault's moment never comes once the "
            "others have fired"
        )

    def counterexample(clean: Execution, found: Execution) -> Counterexample:
        example = _counterexample(campaign, executor, clean, found, found.schedule in unsteady)
        campaign.on_event(CounterexampleFound(example))
        return example

    result = findings.result(
        scenario=campaign.scenario.name,
        kind="scenario",
        counterexample=counterexample,
        guarantee=_guarantee(findings),
        assumptions=tuple(assumptions),
        details=_details(campaign, executor, findings),
        ordering=_ordering(findings),
        anomalies=tuple(shown),
        seed=campaign.seed,
        expected=campaign.expected,
    )
    coverage = replace(
        result.coverage,
        pruned=len(equivalence.folded) + len(equivalence.stand_ins),
        executions=len(findings.executions),
    )
    coverage = replace(coverage, violated=len(broken), complete=findings.complete)
    return replace(result, coverage=coverage)


def _not_injected(sampled: Sequence[Execution]) -> str:
    missed = sum(e.outcome == "not-injected" for e in sampled)
    return f"; {missed} could not be injected and show nothing" if missed else ""


def _guarantee(findings: Findings) -> Guarantee:
    if findings.verdict == "unknown":
        return "none"
    broken = [findings.execution(schedule) for schedule in findings.minimal]
    allowed = (e for e in findings.executions if e.outcome == "good")
    return guarantee_of({a.kind for e in (*broken, *allowed) for a in e.anomalies})


def _ordering(findings: Findings) -> str:
    seen = {e.details.get("ordering") for e in findings.executions}
    return "per-key" if findings.verdict != "unknown" and seen == {"per-key"} else "none"


def _details(campaign: Campaign, executor: ScenarioExecutor, findings: Findings) -> dict[str, Any]:
    runs = findings.executions
    timings: Counter[str] = Counter()
    for execution in runs:
        timings.update(execution.details.get("timings", {}))
    unread = sorted({u for e in runs for u in e.details.get("unread", ())})
    details: dict[str, Any] = {
        "toxiproxy": campaign.backend.toxiproxy.kind,
        **({"limits": list(campaign.backend.limits)} if campaign.backend.limits else {}),
        "seconds_by_phase": {k: round(v / len(runs), 3) for k, v in sorted(timings.items())},
        "seconds_solving": round(findings.solver_seconds, 3),
        "seconds_reading_traces": round(executor.lineage_seconds, 3),
        "fault_classes": executor.equivalence.classes(),
    }
    if unread:
        details["unread"] = unread
    if findings.baseline.trace:
        details["good_trace"] = findings.baseline.trace
    return details


def _counterexample(
    campaign: Campaign,
    executor: ScenarioExecutor,
    clean: Execution,
    found: Execution,
    unsteady: bool,
) -> Counterexample:
    schedule = executor.schedule(found.schedule)
    file = _free(campaign.out)
    campaign.write_counterexample(file, schedule, "again" in found.details)
    return Counterexample(
        faults=tuple(sorted(found.schedule)),
        anomalies=found.anomalies,
        schedule=schedule.to_dict(),
        replay=f"bettong replay {file}",
        words=_words(campaign, schedule, found) + _UNSTEADY * unsteady,
        advice=campaign.scenario.advice,
        frontier=_frontier(clean, found),
        trace=found.trace,
    )


def _words(campaign: Campaign, schedule: Schedule, found: Execution) -> str:
    trace = campaign.out / found.trace if found.trace else None
    events = list(read_trace(trace)) if trace is not None and trace.exists() else []
    faults = as_they_fired(schedule.faults, events)
    words = counterexample_words(faults, found.anomalies, found.details.get("again", ""))
    how = mechanism(events, found.anomalies) if events else []
    return f"{words} In the trace: {'; '.join(how)}." if how else words


def _frontier(clean: Execution, found: Execution) -> tuple[str, ...]:
    """Goals of the good run that the bad one did not reach, in the good run's order."""
    return tuple(
        str(clean.lineage.attributes(goal)["label"])
        for goal in clean.lineage.goals
        if goal not in found.lineage.graph
    )


def _free(out: Path) -> Path:
    number = 1 + sum(1 for _ in out.glob("counterexample-*.json"))
    return out / f"counterexample-{number}.json"
