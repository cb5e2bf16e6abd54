"""Moments of a run in words that someone understands who has never seen the sink."""

from __future__ import annotations

import re

from bettong.harness.faults.point import Point

_BATCH = re.compile(r"batch=(\d+)/(.*)$")
_FILE = re.compile(r"sink\.file=(\d+)\.(\w+)$")
_STATE = re.compile(r"state/op=(\d+)/p=(\d+)/")
_LOG = re.compile(
    r"(?:source=|metadata|state\.metadata|batch=\d+/(?:offsets|commits|_spark_metadata|state/))"
)


def of_sinks_file(step: str) -> bool:
    """Whether a step is a file operation of the sink."""
    return _FILE.search(step) is not None


def of_sparks_log(step: str) -> bool:
    """Whether a step writes to the checkpoint, or to a file sink's log."""
    return _LOG.match(step) is not None


def point_in_words(point: Point) -> str:
    """When it was, as seen from the sink."""
    found = _BATCH.match(point.step)
    if found is None:
        return f"{point.phase} Spark wrote the checkpoint's {point.step}"
    batch, step = found.groups()
    again = "" if point.occurrence == 1 else f" (the {ordinal(point.occurrence)} time)"
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


def ordinal(n: int) -> str:
    """``first``, ``second``, ``11th``."""
    if n < 4:
        return ("first", "second", "third")[n - 1]
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
