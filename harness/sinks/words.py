"""Counterexamples in words that someone understands who has never seen the sink, and advice."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bettong.harness import faults as f
from bettong.harness.faults import Point
from bettong.harness.sinks.judge import ids_in_words
from bettong.harness.sinks.run import AnyFault
from bettong.harness.sinks.situations import Situation
from bettong.harness.sinks.wire_faults import WireFault
from bettong.lineage.results import Anomaly

_BATCH = re.compile(r"batch=(\d+)/(.*)$")
_FILE = re.compile(r"sink\.file=(\d+)\.(\w+)$")
_OUTCOMES = {
    "Duplicate": "{ids} {are} there more than once",
    "Loss": "{ids} {are} missing",
    "Phantom": "{ids} {are} there although nobody wrote {them}",
    "Corrupt": "{ids} {are} there with other content",
    "Reorder": "rows of one key are out of order",
    "Violation": "the target cannot be read any more ({why})",
    "Stuck": "the query does not get to its end ({why})",
}


def moment_in_words(point: Point) -> str:
    """When it was, as seen from the sink."""
    found = _BATCH.match(point.step)
    if found is None:
        return f"{point.phase} Spark wrote the checkpoint's {point.step}"
    batch, step = found.groups()
    again = "" if point.occurrence == 1 else f" (the {_ordinal(point.occurrence)} time)"
    before = point.phase == "before"
    if step == "offsets":
        told = (
            f"before batch {batch} was planned"
            if before
            else (f"after batch {batch} was planned, before any of its tasks")
        )
    elif step == "commits":
        told = (
            f"after batch {batch} was written, before Spark recorded that (commits/{batch})"
            if before
            else f"right after Spark had recorded batch {batch} as done"
        )
    elif step == "_spark_metadata":
        told = f"{point.phase} the file sink's log named the files of batch {batch}"
    elif found_file := _FILE.search(step):
        number, operation = found_file.groups()
        told = f"right before the sink's {operation} in batch {batch} (its file operation {number})"
    elif step.endswith("/source.middle"):
        told = f"when a task of batch {batch} had read half of its rows"
    elif step.endswith("/task"):
        told = f"{'before' if before else 'after'} a task of batch {batch} had done its work"
    else:
        told = f"{point.phase} {step} of batch {batch}"
    return told + again


def fault_in_words(fault: AnyFault) -> str:
    """What happened."""
    if isinstance(fault, Situation):
        return fault.words
    if isinstance(fault, WireFault):
        return _wire_in_words(fault)
    match fault:
        case f.Crash(at=at):
            return f"The driver died {moment_in_words(at)}; the query was started again."
        case f.Storage(at=at) if _FILE.search(at.step):
            when = moment_in_words(at).removeprefix("right before ")
            return f"An input/output error was the answer to {when}."
        case f.Storage(at=at):
            return f"An attempt failed {moment_in_words(at)}; Spark tried the task again."
        case f.Pause(start=start):
            return (
                f"The driver stood still {moment_in_words(start)}, a new one took over and ended "
                "the work; then the old one went on."
            )
    return f"{fault.id}."


def _wire_in_words(fault: WireFault) -> str:
    endpoint, _, request = fault.point.request.partition("/")
    number, _, label = request.partition("request=")[2].partition(" ")
    what = f"{label or 'request'} (request {number} of connection {request[5:6]} to {endpoint})"
    executed = fault.point.kind == "omit-reply"
    if fault.how == "crash":
        became = "which was carried out" if executed else "which never arrived"
        return f"The driver died when it had sent {what}, {became}; the query was started again."
    told = (
        f"{what} was carried out, but its reply was lost with the connection"
        if executed
        else (f"{what} was lost with its connection before it arrived")
    )
    return told + (", each time it was sent." if fault.how == "always lost" else ".")


def tell(
    faults: Sequence[AnyFault],
    anomalies: Sequence[Anomaly],
    rows_per_batch: int,
    layout: bool,
) -> str:
    """The whole story: the faults, what followed, what a reader sees."""
    told = [fault_in_words(fault) for fault in faults] or ["Nothing went wrong on the way."]
    if layout:
        told.append("The replay dealt the same rows to its partitions in another way.")
    return " ".join([*told, f"Now {_outcome(anomalies, rows_per_batch)}."])


def _outcome(anomalies: Sequence[Anomaly], rows_per_batch: int) -> str:
    parts = []
    for kind in dict.fromkeys(a.kind for a in anomalies):
        ids = [id for a in anomalies if a.kind == kind for id in a.messages]
        batches = sorted(
            {int(i.partition("/")[2]) // rows_per_batch for i in ids if i[2:].isdigit()}
        )
        of = f" (batch {', '.join(map(str, batches))})" if batches else ""
        one = len(ids) == 1
        text = _OUTCOMES.get(kind, kind).format(
            ids=ids_in_words(ids),
            are="is" if one else "are",
            them="it" if one else "them",
            why=next((str(a.seen) for a in anomalies if a.kind == kind), ""),
        )
        parts.append(text + of)
    return "; ".join(parts)


def advise(faults: Sequence[AnyFault], kinds: frozenset[str], layout: bool) -> str:
    """What to repair, by the mechanism that was seen."""
    if layout:
        return (
            "A replay has the same rows but not their order or partitions: make what identifies a "
            "row from the row itself (its id), never from its place, partition or a random number."
        )
    if any(isinstance(x, f.Pause) for x in faults):
        return (
            "An old driver can write after its successor: let the target refuse it, by a unique "
            "constraint on the batch or the row's id, or by a fencing token that only grows."
        )
    if any(isinstance(x, Situation) for x in faults):
        return (
            "This is no fault but every day's work: make the sink take a batch without rows, and a "
            "new start in good order."
        )
    if "Violation" in kinds:
        return (
            "Readers meet what a writer had not finished: write aside and rename when it is whole."
        )
    if "Stuck" in kinds:
        return (
            "The sink cannot take a batch that it has seen in part: let a replay of the same "
            "batch start from what is there, instead of failing on it."
        )
    if "Loss" in kinds:
        return (
            "Something says that the batch is done before its rows are there: write rows and "
            "marker in one transaction, and let no error be swallowed."
        )
    if any(isinstance(x, WireFault) and x.how != "crash" for x in faults):
        return (
            "When a reply is lost nobody knows whether the request was carried out, and whoever "
            "sends it again does it twice: make each request idempotent, by a key or a condition "
            "that the server checks."
        )
    if any(isinstance(x, f.Storage) for x in faults):
        return (
            "What a failed attempt wrote stays: have each attempt write aside and publish once at "
            "the batch's commit, or write by key (upsert by id)."
        )
    return (
        "A replay comes with the same batch id and the same rows: record the batch id in the same "
        "transaction as the rows and skip what is recorded, or write by key (upsert by id)."
    )


def _ordinal(n: int) -> str:
    return {2: "second", 3: "third"}.get(n, f"{n}th")
