"""The search for the smallest fault sets that lower a sink's guarantee."""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from bettong.harness.queries.request import Request
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.search.executor import QueryExecutor
from bettong.harness.queries.sink.loading import source_of
from bettong.lineage.faults import Bounds
from bettong.lineage.results import tool_version
from bettong.lineage.search import loop
from bettong.lineage.search.executor import BudgetSpentError, Execution, SideBySide
from bettong.lineage.search.findings import Findings
from bettong.lineage.search.loop import Budget

_SAMPLE = 2


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
    question = _question(request)
    log = _log_of(request)
    findings = loop.search(
        SideBySide(executor.attempt, executor.widened),
        Bounds({}, request.faults),
        suggest=executor.why.likely,
        settle=executor.settled,
        enough=lambda: request.first and bool(executor.confirmed),
        at_a_time=executor.round_of,
        budget=Budget(request.budget.runs, deadline.left),
        find_all=True,
        smallest_first=True,
        log=log,
        question=question,
        on_event=executor.on_event,
    )
    if findings.complete:
        _check_equivalence(executor, findings, sample)
    return findings


def forget(request: Request) -> None:
    """What was found so far counts for nothing."""
    log = _log_of(request)
    if log is not None:
        log.unlink(missing_ok=True)


def _log_of(request: Request) -> Path | None:
    """Where the search is noted, by which it goes on."""
    if request.out is None:
        return None
    digest = blake2b(_question(request).encode(), digest_size=4).hexdigest()
    return request.out / f"search-{digest}.jsonl"


def _question(request: Request) -> str:
    """Anything that changes the answer is in it, the sink's own code too."""
    code = blake2b(source_of(request.target).encode(), digest_size=8).hexdigest()
    options = sorted((*request.options.items(), *request.endpoints.items()))
    digest = blake2b(repr(options).encode(), digest_size=8).hexdigest()
    return (
        f"{Path(request.target).name}, code {code}, options {digest}, at most {request.faults} "
        f"faults in {request.window} batches, kills {request.real}, bettong {tool_version()}"
    )


def _check_equivalence(
    executor: QueryExecutor, findings: Findings, sample: Callable[[Execution], None]
) -> None:
    """Run a few of the fault sets that were folded: each must end as the one did that stands for
    it."""
    outcomes = {e.schedule: e.outcome for e in findings.executions}
    folded = executor.why.equivalence.folded
    known = sorted((f for f in folded if folded[f] in outcomes), key=sorted)
    for schedule in random.Random(0).sample(known, min(_SAMPLE, len(known))):
        try:
            execution = executor.run(schedule)
        except BudgetSpentError:
            findings.complete = False
            return
        findings.executions.append(execution)
        sample(execution)
        if execution.outcome == "violation" and outcomes[folded[schedule]] != "violation":
            findings.minimal.append(schedule)
