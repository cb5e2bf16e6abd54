"""Counterexamples in words that someone understands who has never seen the sink."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.half_written import HALF_WRITTEN
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.judge import ids_in_words
from bettong.lineage.results import Anomaly

_OUTCOMES = {
    "Loss": "{ids} {are} missing",
    "Phantom": "{ids} {are} there although nobody wrote {them}",
    "Corrupt": "{ids} {are} there with other content",
    "Reorder": "rows of one key are out of order",
    "Violation": "the target cannot be read any more ({why})",
    "StateDivergence": "the query has not found its checkpoint ({why})",
    "Stuck": "the query does not get to its end ({why})",
}
_FAILED = "The query failed and was started again"
_TIMES = {2: "twice", 3: "three times"}


def explain(
    faults: Sequence[QueryFault],
    anomalies: Sequence[Anomaly],
    rows_per_batch: int,
    layout: bool,
    failed: bool = False,
) -> str:
    """The whole story: the faults, what followed, what a reader sees.

    ``failed``: the query failed of it, and was started again.
    """
    reported = [fault.describe() for fault in faults] or ["Nothing went wrong on the way."]
    if layout:
        reported.append("The replay dealt the same rows to its partitions in another way.")
    reported += [t for t in (_how(faults, anomalies, rows_per_batch, failed),) if t]
    return " ".join([*reported, f"Now {_outcome(anomalies, rows_per_batch)}."])


def lowered(by: int, ways: int) -> str:
    """By how many minimal fault sets a level is lowered, of which only one of each way of failing
    is shown. Empty for none."""
    if by < 2:
        return f"{by} minimal fault set lowers it" if by else ""
    told = f"{by} minimal fault sets lower it"
    if ways == by:
        return told
    return f"{told}, {'all alike: one' if ways == 1 else f'in {ways} ways: one of each'} is shown"


def _how(
    faults: Sequence[QueryFault], anomalies: Sequence[Anomaly], rows_per_batch: int, failed: bool
) -> str:
    """Between the fault and what is seen: who wrote, or left out, the rows."""
    kinds = {a.kind for a in anomalies}
    if len(faults) != 1 or len(kinds) != 1:
        return ""
    batches = _batches(anomalies, rows_per_batch)
    fault = faults[0]
    if fault.between_batches and kinds <= {"Loss", "Duplicate"}:
        return "No batch had to be replayed."
    one = f"batch {batches[0]}" if len(batches) == 1 else "the batch"
    if kinds == {"Duplicate"}:
        if fault.replays and not batches:
            return "After the restart rows were written that were there."
        if fault.replays and _own_batch(fault) not in (None, *batches):
            return f"After the restart rows of {one} were written again."
        if fault.replays:
            return f"The replay of {one} wrote its rows again."
        if failed:
            return f"{_FAILED}, and its replay of {one} wrote its rows again."
        return fault.doubled
    if kinds == {"Loss"}:
        if fault.mechanism == "unawaited":
            return (
                f"Spark had recorded {one} as done, or its replay took it for done, and nobody "
                "sent it again."
            )
        ended = _replayed_without(fault, anomalies, rows_per_batch, batches)
        if fault.crashes or fault.replays:
            return f"The replay {ended}."
        if fault.forgets_answered:
            return f"It had answered for the rows of {one}, and did not keep them."
        if failed:
            return f"{_FAILED}, and its replay {ended}."
        if fault.swallowable:
            return "The error was swallowed, and Spark recorded the batch as done."
    return ""


def _replayed_without(
    fault: QueryFault, anomalies: Sequence[Anomaly], rows_per_batch: int, batches: Sequence[int]
) -> str:
    """What a replay did that lacks rows: whether it has skipped its batch, or has written what
    nobody can read, is not known."""
    if fault.mechanism == HALF_WRITTEN:
        return "met that half and did not write what is missing"
    own = _own_batch(fault)
    missing = sum(len(a.messages) for a in anomalies)
    if len(batches) == 1 and missing == rows_per_batch and own in (None, batches[0]):
        return f"left out all rows of batch {batches[0]}"
    return "did not write what is missing"


def _own_batch(fault: QueryFault) -> int | None:
    at = fault.recovers_from
    return None if at is None else StepId.parse(at.step).batch


def _batches(anomalies: Sequence[Anomaly], rows_per_batch: int, kind: str = "") -> list[int]:
    ids = [id for a in anomalies if kind in ("", a.kind) for id in a.messages]
    made = [id for id in ids if rows_per_batch and id.startswith("m/") and id[2:].isdigit()]
    return sorted({int(id[2:]) // rows_per_batch for id in made})


def _outcome(anomalies: Sequence[Anomaly], rows_per_batch: int) -> str:
    parts = []
    for kind in dict.fromkeys(a.kind for a in anomalies):
        ids = [id for a in anomalies if a.kind == kind for id in a.messages]
        batches = _batches(anomalies, rows_per_batch, kind)
        of = f" (batch {', '.join(map(str, batches))})" if batches else ""
        one = len(ids) == 1
        are = "is" if one else "are"
        if kind == "Duplicate":
            text = f"{ids_in_words(ids)} {are} there {_how_often(anomalies)}"
        else:
            text = _OUTCOMES.get(kind, kind).format(
                ids=ids_in_words(ids),
                are=are,
                them="it" if one else "them",
                why=next((str(a.seen) for a in anomalies if a.kind == kind), ""),
            )
        parts.append(text + of)
    return "; ".join(parts)


def _how_often(anomalies: Sequence[Anomaly]) -> str:
    duplicates = (a.seen for a in anomalies if a.kind == "Duplicate")
    times: set[int] = {seen["times"] for seen in duplicates if isinstance(seen, dict)}
    return _TIMES.get(times.pop(), "more than once") if len(times) == 1 else "more than once"
