"""The search for the smallest fault sets that lower a sink's guarantee."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.search.executor import QueryExecutor
from bettong.harness.queries.sink.code import code_of
from bettong.lineage.faults import Bounds
from bettong.lineage.results import tool_version
from bettong.lineage.search import loop
from bettong.lineage.search.executor import BudgetSpentError, Execution, SideBySide
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import Budget

_SAMPLE = 2
_LOG = "search-{}.jsonl"


def search(
    executor: QueryExecutor,
    request: Request,
    sample: Callable[[Execution], None],
    deadline: Deadline,
) -> Findings:
    """Try all that the lineage of the clean run, and of every run that stays good, puts up.

    With a folder for results every run is noted there at once, and a search that was interrupted,
    or ended with its budget, goes on where it was. At the end some of the fault sets that were
    folded are run all the same, each given to ``sample``. Raises DisturbedError.
    """
    question = question_of(request, executor.why.seen)
    log = log_of(request, executor.why.seen)
    findings = loop.search(
        SideBySide(executor.attempt, executor.widened),
        Bounds({}, request.faults),
        suggest=executor.why.likely,
        settle=executor.settled,
        enough=lambda: request.first and executor.confirmations.show_less,
        at_a_time=executor.window_of,
        allowed=executor.goes_on,
        budget=Budget(request.budget.runs, deadline.left),
        find_all=True,
        smallest_first=True,
        log=log,
        question=question,
        on_event=executor.on_event,
    )
    if findings.complete:
        check_equivalence(executor, findings, sample)
        check_spared(executor, findings)
    return findings


def forget(request: Request) -> None:
    """What was found so far, where what the query keeps is seen, counts for nothing."""
    log = log_of(request, seen=True)
    if log is not None:
        log.unlink(missing_ok=True)


def log_of(request: Request, seen: bool) -> Path | None:
    """Where the search is noted, by which it goes on."""
    if request.out is None:
        return None
    digest = blake2b(question_of(request, seen).encode(), digest_size=4).hexdigest()
    return request.out / _LOG.format(digest)


def question_of(request: Request, seen: bool = True) -> str:
    """Anything that changes the answer is in it, the code that runs are made of too, what a script
    is fed, and whether what the query keeps is seen."""
    code = code_of(request.target)
    options = sorted((*request.options.items(), *request.endpoints.items()))
    asked = blake2b(repr((options, request.script)).encode(), digest_size=8)
    for file in request.script.files if request.script else ():
        asked.update(file.read_bytes() if file.is_file() else b"")
    digest = asked.hexdigest()
    return (
        f"{Path(request.target).name}, code {code}, options {digest}, at most {request.faults} "
        f"faults in {request.window} batches, {request.expect} expected, kills {request.real}, "
        f"sees what is kept {seen}, "
        f"bettong {tool_version()}"
    )


def check_equivalence(
    executor: QueryExecutor, findings: Findings, sample: Callable[[Execution], None]
) -> None:
    """Run a few of the fault sets that were folded: each must show no more than the one did that
    stands for it. Those for which none was run, as it contains a set that breaks the query and they
    do not, are run as well."""
    known = {e.schedule: e for e in findings.executions}
    folded = executor.why.equivalence.folded
    try:
        for schedule in sorted((f for f in folded if f not in known), key=sorted):
            broken = any(
                less <= schedule and not executor.goes_on(findings.execution(less))
                for less in findings.minimal
            )
            if folded[schedule] not in known and not broken:
                _add(executor.run(schedule), findings)
        sampled = sorted((f for f in folded if folded[f] in known), key=sorted)
        chosen = random.Random(0).sample(sampled, min(_SAMPLE, len(sampled)))
        attempts = executor.side_by_side(partial(executor.attempt, schedule) for schedule in chosen)
        for schedule, execution in zip(chosen, map(executor.settled, attempts), strict=True):
            sample(execution)
            if shows_more(execution, known[folded[schedule]]):
                _add(execution, findings)
            else:
                findings.executions.append(execution)
    except BudgetSpentError:
        findings.complete, findings.spent = False, True


def check_spared(executor: QueryExecutor, findings: Findings) -> None:
    """Have the driver die by SIGKILL before and after the window's last batch is recorded, and late
    in what it does, where it was spared before: what a query keeps in its memory shows there, in a
    batch, or a part of one, that is written twice or never. Raises DisturbedError."""
    known = {e.schedule: e for e in findings.executions}
    last = executor.why.window - 1
    recorded = (DriverCrash(Point(f"batch={last}/commits", x)) for x in ("before", "after"))
    spared = []
    for fault in (*recorded, *executor.why.last_amid(last)):
        crash = frozenset({fault.id})
        stands = executor.why.equivalence.folded.get(crash, crash)
        if (found := known.get(crash, known.get(stands))) is not None:
            spared.append(replace(found, schedule=crash))
    try:
        more_follows = executor.real or findings.minimal  # which is to be shown again
        make = executor.side_by_side if more_follows else executor.last_side_by_side
        make([partial(executor.confirmations.expect_no_more_when_killed, x) for x in spared])
    except BudgetSpentError:
        findings.complete, findings.spent = False, True


def shows_more(execution: Execution, standing: Execution) -> bool:
    """Whether a fault set that was folded shows anomalies that the one does not that stands for
    it."""
    seen, stood_for = ({a.kind for a in e.anomalies} for e in (execution, standing))
    return not seen <= stood_for


def _add(execution: Execution, findings: Findings) -> None:
    findings.executions.append(execution)
    if execution.outcome == "violation":
        findings.minimal.append(execution.schedule)
