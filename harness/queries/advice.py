"""What to repair, by the mechanism that was seen."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.queries.faults.half_written import HALF_WRITTEN
from bettong.harness.queries.faults.operations import LARGER, LATER, LONGER, TWELVE
from bettong.harness.queries.faults.query_fault import QueryFault

_PLACE = (
    "A replay has the same rows but not their order or partitions: make what identifies a row from "
    "the row itself (its id), never from its place, partition or a random number."
)
_ZOMBIE = (
    "An old driver can write after its successor: let the target refuse it, by a unique constraint "
    "on the batch or the row's id that stays for good, or by a fencing token that only grows; of "
    "files, give each batch a name of its own, which nobody replaces or takes away (os.link, or a "
    "new folder, fails where it is there)."
)
_LONGER = (
    "Where fewer batches are right, keep and compare a batch's id as a number, for as text 10 "
    "comes before 9, and look at what is done with every so many batches."
)
_TWELVE = (
    "No fault is needed, only more batches: keep and compare a batch's id as a number, for as text "
    "10 comes before 9, and look at what is done with every so many batches."
)
_LARGER = (
    "Where smaller batches are right, what is done in pieces of so many rows needs a key or marker "
    "for each piece, of the same rows in a replay, or one for all when they are there; what is "
    "read in pages is to be read to the end."
)
_DAILY = (
    "This is no fault but every day's work: make the sink take a batch without rows, and a new "
    "start in good order."
)
_SWALLOWED = (
    "An error was caught and forgotten, and Spark recorded the batch as done: let the error out, "
    "so that the query fails and the batch is replayed."
)
_TAKEN_AWAY = (
    "No fault is needed: a batch takes away what others wrote (an overwrite, or a key or "
    "partition that rows of several share), rows that look alike are taken for one, an error is "
    "caught and forgotten, or a watermark has passed them. Write each row under its own id, beside "
    "what is there, and let errors out."
)
_WRITTEN_AGAIN = (
    "No fault is needed: a batch is written by two actions, or what is kept of earlier batches "
    "is written again with each. Write each row once, or by key (upsert by id)."
)
_BY_ITSELF = (
    "No fault is needed: mend what the code does to these rows by itself, or what says that they "
    "are right; then look what faults do."
)
_UNFINISHED = (
    "Readers meet what a writer had not finished: write aside and rename when it is whole."
)
_HALF_WRITTEN = (
    "Half of a write stays, and what is written next comes right behind it: write aside and rename "
    "when it is whole, or cut off what has no end before you write (truncate)."
)
_CHECKPOINT = (
    "Leave the checkpoint where it is, and give the same folder at each start: without it a query "
    "cuts its input into other batches, and whatever knows batches by their number goes wrong."
)
_STUCK = (
    "The sink cannot take a batch that it has seen in part: let a replay of the same batch start "
    "from what is there, instead of failing on it."
)
_UNAWAITED = (
    "Spark records a batch when the sink returns: wait for the reply to each request before that, "
    "also where a thread or a producer's buffer sends it."
)
_MARKER_FIRST = (
    "Something says that the batch is done before its rows are there: write rows and marker in one "
    "transaction."
)
_ACKNOWLEDGED = (
    "The server answered before the rows were safe: have it confirm only what survives its own "
    "crash (acks=all, fsync, a durable queue or table)."
)
_UNAVAILABLE = (
    "An answer of 5xx says that nothing was done and nothing is known: raise it (requests: "
    "raise_for_status()), so that the query fails and the batch is replayed, or ask again until "
    "there is another one."
)
_REFUSED = (
    "An error of the server's says that the request was not carried out, and often that all of its "
    "transaction is gone: let it out, so that the query fails and the batch is replayed, or do the "
    "whole transaction again, not its last statement alone."
)
_REPLY = (
    "When a reply is lost nobody knows whether the request was carried out, and whoever sends it "
    "again does it twice: make each request idempotent, by a key or a condition that the server "
    "checks."
)
_ATTEMPT = (
    "What a failed attempt wrote stays, and two attempts of one task can be there at once: have "
    "each attempt write aside and publish once at the batch's commit, or write by key (upsert by "
    "id)."
)
_NOT_AGAIN = (
    "A second attempt at a task did not do what the first one had done: what a worker's process "
    "or the driver remembers stays with it when an attempt fails. Make what a task does hang on "
    "its rows alone, or have it known for done only when the batch is."
)
_OTHERWISE = (
    "A second attempt at a task came to something else: what the first one has added is there "
    "still, or what a worker's process remembers (a variable of a module, a cache) stays with it "
    "when an attempt fails. Make what a task does hang on its rows and its state alone, and "
    "publish it once, at the batch's commit."
)
_BROKEN_OFF = (
    "Where reading the rows of an attempt fails half way, its Python code sees them end as if "
    "there were no more: what it does after the last one (a commit, a marker, a rename) must not "
    "count by itself. Have each attempt write aside and publish once at the batch's commit, or "
    "write by key (upsert by id)."
)
_LATER = (
    "A replay may come on another day: name files and identify rows by the batch's id, or by what "
    "is in the rows, never by the time at which they are written."
)
_MEMORY = (
    "Nothing was replayed: what the driver keeps in its memory (a number, what it has seen, rows "
    "not sent yet) is gone with it. Make names and numbers from the batch's id, and keep what has "
    "to last in the target, in one transaction with the rows."
)
_REPLAY = (
    "A replay comes with the same batch id and the same rows: record the batch id in the same "
    "transaction as the rows and skip what is recorded, or write by key (upsert by id)."
)


def advise(
    faults: Sequence[QueryFault], kinds: frozenset[str], layout: bool, failed: bool = False
) -> str:
    """What to repair, given what fired, what was seen, whether it needed a replay that was dealt
    out in another way, and whether the query failed of it and was started again."""
    crashed = any(x.crashes for x in faults)
    restarted = any(x.operational and x.replays for x in faults)
    if not faults:
        return _without_faults(kinds)
    if "StateDivergence" in kinds:  # of which all else may come
        return _CHECKPOINT
    if LATER in faults:
        return _LATER
    if TWELVE in faults:
        return _TWELVE
    if LONGER in faults and "Stuck" not in kinds:
        return _LONGER
    if LARGER in faults and "Stuck" not in kinds:
        return _LARGER
    if layout:
        return _PLACE
    if any(x.mechanism == "zombie" for x in faults):
        return _ZOMBIE
    if any(x.mechanism == HALF_WRITTEN for x in faults):
        return _HALF_WRITTEN
    if "Violation" in kinds:
        return _UNFINISHED
    if "Stuck" in kinds:
        return _STUCK
    if any(x.mechanism == "unavailable" for x in faults) and not (crashed or failed):
        return _UNAVAILABLE
    if any(x.mechanism == "refused" for x in faults) and not (crashed or failed):
        return _REFUSED
    if any(x.between_batches for x in faults) and not any(x.replays for x in faults):
        return _MEMORY
    if "Loss" in kinds:
        if any(x.forgets_answered for x in faults):
            return _ACKNOWLEDGED
        if any(x.mechanism == "unawaited" for x in faults):
            return _UNAWAITED
        if any(x.breaks_off for x in faults) and not (crashed or restarted or failed):
            return _BROKEN_OFF
        if crashed or restarted or failed:
            return _MARKER_FIRST
        again = all(x.mechanism == "attempt" and not x.swallowable for x in faults)
        return _NOT_AGAIN if again else _SWALLOWED
    if any(x.on_wire for x in faults) and not (crashed or failed):
        return _REPLY
    if any(x.mechanism == "attempt" for x in faults):
        return _OTHERWISE if kinds == {"Corrupt"} else _ATTEMPT
    if any(x.operational for x in faults) and not restarted:
        return _DAILY
    return _REPLAY


def _without_faults(kinds: frozenset[str]) -> str:
    if "StateDivergence" in kinds:
        return _CHECKPOINT
    if "Violation" in kinds:
        return _UNFINISHED
    if "Loss" in kinds:
        return _TAKEN_AWAY
    return _WRITTEN_AGAIN if "Duplicate" in kinds else _BY_ITSELF
