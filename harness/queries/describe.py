"""Counterexamples in words that someone understands who has never seen the sink."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bettong.harness.faults import kinds as f
from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.kinds import AnyFault, LostExecutor, RefusedOnce
from bettong.harness.queries.faults.operations import OperationalEvent
from bettong.harness.queries.faults.wire import WireFault
from bettong.harness.queries.judge import ids_in_words
from bettong.lineage.results import Anomaly

_BATCH = re.compile(r"batch=(\d+)/(.*)$")
_FILE = re.compile(r"sink\.file=(\d+)\.(\w+)$")
_OUTCOMES = {
    "Loss": "{ids} {are} missing",
    "Phantom": "{ids} {are} there although nobody wrote {them}",
    "Corrupt": "{ids} {are} there with other content",
    "Reorder": "rows of one key are out of order",
    "Violation": "the target cannot be read any more ({why})",
    "Stuck": "the query does not get to its end ({why})",
}
_STATE = re.compile(r"state/op=(\d+)/p=(\d+)/")
_LOG = re.compile(
    r"(?:source=|metadata|state\.metadata|batch=\d+/(?:offsets|commits|_spark_metadata|state/))"
)
_FAILED = "The query failed and was started again"
_TIMES = {2: "twice", 3: "three times"}


def point_in_words(point: Point) -> str:
    """When it was, as seen from the sink."""
    found = _BATCH.match(point.step)
    if found is None:
        return f"{point.phase} Spark wrote the checkpoint's {point.step}"
    batch, step = found.groups()
    again = "" if point.occurrence == 1 else f" (the {_ordinal(point.occurrence)} time)"
    before = point.phase == "before"
    if step == "offsets":
        reported = (
            f"before batch {batch} was planned"
            if before
            else (f"after batch {batch} was planned, before any of its tasks")
        )
    elif step == "commits":
        reported = (
            f"after batch {batch} was written, before Spark recorded that (commits/{batch})"
            if before
            else f"right after Spark had recorded batch {batch} as done"
        )
    elif step == "_spark_metadata":
        reported = f"{point.phase} the file sink's log named the files of batch {batch}"
    elif found_file := _FILE.search(step):
        number, operation = found_file.groups()
        reported = (
            f"right before the sink's {operation} in batch {batch} (its file operation {number})"
        )
    elif found_state := _STATE.match(step):
        operator, partition = found_state.groups()
        reported = (
            f"{point.phase} the state of batch {batch} (operator {operator}, partition "
            f"{partition}) was in place"
        )
    elif step.endswith("/source.middle"):
        reported = f"when a task of batch {batch} had read half of its rows"
    elif step.endswith("/task"):
        reported = f"{'before' if before else 'after'} a task of batch {batch} had done its work"
    else:
        reported = f"{point.phase} {step} of batch {batch}"
    return reported + again


def fault_in_words(fault: AnyFault) -> str:
    """What happened."""
    if isinstance(fault, OperationalEvent):
        return fault.words
    if isinstance(fault, WireFault):
        reported = _wire_in_words(fault)
        return reported[0].upper() + reported[1:]
    if isinstance(fault, LostExecutor):
        return _lost_in_words(fault)
    if isinstance(fault, RefusedOnce):
        when = point_in_words(fault.at).capitalize()
        return f"{when}, {fault.endpoint} closed its connections and turned the next one away."
    match fault:
        case f.Crash(at=at):
            return f"The driver died {_crash_in_words(at)}; the query was started again."
        case f.Storage(at=at) if _FILE.search(at.step):
            when = point_in_words(at).removeprefix("right before ")
            return f"An input/output error was the answer to {when}."
        case f.Storage(at=at) if _LOG.match(at.step):
            return f"An input/output error came {point_in_words(at)}, and the file was not there."
        case f.Storage(at=at):
            return f"An attempt failed {point_in_words(at)}; Spark tried the task again."
        case f.Pause(start=start):
            return (
                f"The driver stood still {point_in_words(start)}, a new one took over and ended "
                "the work; then the old one went on."
            )
        case f.Cut(right=(endpoint,), start=start):
            return (
                f"{point_in_words(start).capitalize()}, {endpoint} closed its connections and "
                "refused new ones for as long as the query tried."
            )
    return f"{fault.id}."


def _crash_in_words(at: Point) -> str:
    """The one crash that most meet, told in the order of what happened."""
    if at.step.endswith("/commits") and at.phase == "before" and at.occurrence == 1:
        batch = at.step.removeprefix("batch=").removesuffix("/commits")
        return f"when batch {batch} was written, before Spark recorded that (commits/{batch})"
    return point_in_words(at)


def _lost_in_words(fault: LostExecutor) -> str:
    when = point_in_words(fault.at).replace("a task", "the first attempt at a task", 1)
    end = (
        "did the task's work; then the first one went on."
        if fault.goes_on
        else "did the task's work; the first one was never seen again."
    )
    return f"Spark lost sight of the executor {when}. A second attempt {end}"


def _wire_in_words(fault: WireFault) -> str:
    what = _request_in_words(fault)
    executed = fault.point.kind == "omit-reply"
    became = "which was carried out" if executed else "which never arrived"
    match fault.how:
        case "crash":
            return (
                f"The driver died when it had sent {what}, {became}; the query was started again."
            )
        case "restarted":
            return f"The server was killed and started again at {what}, {became}."
        case "paused":
            return f"The server stood still at {what} until the client gave up, and then went on."
        case "always lost":
            return (
                f"{what} was carried out, but its reply was lost with the connection, each time "
                "it was sent."
            )
    if fault.point.kind == "cut":
        return f"Half of {what} arrived, then its connection was lost."
    if executed:
        return f"{what} was carried out, but its reply was lost with the connection."
    return f"{what} was lost with its connection before it arrived."


def _request_in_words(fault: WireFault) -> str:
    point = fault.point
    if point.match == "since":
        nth = f"{_ordinal(point.occurrence)} " if point.occurrence > 1 else ""
        return f"the {nth}{point.key} to {point.endpoint} after the restart"
    if point.by_count:
        return f"the {_ordinal(point.occurrence)} {point.key} to {point.endpoint}"
    endpoint, _, request = point.request.partition("/")
    number = request.partition("request=")[2].partition(" ")[0]
    connection = request.partition("/")[0].removeprefix("conn=")
    return f"{fault.label or 'request'} (request {number} of connection {connection} to {endpoint})"


def explain(
    faults: Sequence[AnyFault],
    anomalies: Sequence[Anomaly],
    rows_per_batch: int,
    layout: bool,
    failed: bool = False,
) -> str:
    """The whole story: the faults, what followed, what a reader sees.

    ``failed``: the query failed of it, and was started again.
    """
    reported = [fault_in_words(fault) for fault in faults] or ["Nothing went wrong on the way."]
    if layout:
        reported.append("The replay dealt the same rows to its partitions in another way.")
    reported += [t for t in (_how(faults, anomalies, rows_per_batch, failed),) if t]
    return " ".join([*reported, f"Now {_outcome(anomalies, rows_per_batch)}."])


def _how(
    faults: Sequence[AnyFault], anomalies: Sequence[Anomaly], rows_per_batch: int, failed: bool
) -> str:
    """Between the fault and what is seen: who wrote, or left out, the rows."""
    kinds = {a.kind for a in anomalies}
    if len(faults) != 1 or len(kinds) != 1:
        return ""
    batches = _batches(anomalies, rows_per_batch)
    fault = faults[0]
    replayed = isinstance(fault, f.Crash) or (isinstance(fault, WireFault) and fault.how == "crash")
    one = f"batch {batches[0]}" if len(batches) == 1 else "the batch"
    if kinds == {"Duplicate"}:
        if replayed or (isinstance(fault, OperationalEvent) and fault.crash is not None):
            return f"The replay of {one} wrote its rows again."
        if failed:
            return f"{_FAILED}, and its replay of {one} wrote its rows again."
        if isinstance(fault, WireFault):
            return "Whoever did not see the reply sent its rows again."
        if isinstance(fault, LostExecutor) or (
            isinstance(fault, f.Storage) and not _FILE.search(fault.at.step)
        ):
            return "Both attempts wrote rows that readers see."
        if isinstance(fault, f.Pause):
            return "Both drivers wrote them."
    if kinds == {"Loss"}:
        if replayed:
            return f"The replay took {one} for done and skipped it."
        if isinstance(fault, WireFault) and fault.of_what_was_answered:
            return f"It had answered for the rows of {one}, and did not keep them."
        if failed:
            return f"{_FAILED}, and its replay took {one} for done and skipped it."
        if isinstance(fault, WireFault | RefusedOnce | f.Cut) or (
            isinstance(fault, OperationalEvent) and fault.refusable
        ):
            return "The error was swallowed, and Spark recorded the batch as done."
    return ""


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


def _ordinal(n: int) -> str:
    if n < 4:
        return ("first", "second", "third")[n - 1]
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
