"""Which names a step can have, by shape, and the nearest right one for a misspelled."""

from __future__ import annotations

import re

from bettong.harness.faults.step_ids import StepId
from bettong.lineage.nearest import nearest

SHAPES = frozenset(
    {
        "sender.connect/STREAM",
        "sender.send/STREAM/N",
        "sender.forget/STREAM/N",
        "gateway.start",
        "gateway.create/STREAM",
        "gateway.append/STREAM/N",
        "gateway.ack/STREAM/N",
        "gateway.release/STREAM/N",
        "epoch=N/take",
        "epoch=N/sink.open",
        "receiver.start",
        "receiver.create",
        "receiver.open/epoch=N",
        "batch=N/source.wait",
        "batch=N/source.plan",
        "batch=N/source.note",
        "batch=N/offsets",
        "batch=N/stage=N/p=N/a=N/task",
        "batch=N/p=N/a=N/source.read",
        "batch=N/p=N/a=N/part=N/source.read",
        "batch=N/p=N/a=N/source.middle",
        "batch=N/p=N/a=N/state.write",
        "batch=N/level=N/p=N/a=N/state.write",
        "batch=N/level=N/p=N/a=N/sink.prepare",
        "batch=N/p=N/a=N/sink.prepare",
        "batch=N/level=N/p=N/a=N/part=N/sink.prepare",
        "batch=N/p=N/a=N/part=N/sink.prepare",
        "receiver.prepare/batch=N/p=N/a=N",
        "receiver.prepare/batch=N/p=N/a=N/part=N",
        "batch=N/state.manifest",
        "batch=N/sink.commit",
        "batch=N/p=N/sink.commit",
        "batch=N/sink.record",
        "receiver.commit/batch=N",
        "batch=N/commits",
        "batch=N/source.commit",
        "batch=N/p=N/state.merge",
        "batch=N/_spark_metadata",
        "metadata",
    }
)
_FREE_TAIL = re.compile(r"(?:batch=\d+/state|state\.metadata|source=\d+)/\S+$")


def is_step(step: str) -> bool:
    """Whether a step of this name can exist."""
    return StepId.parse(step).shape in SHAPES or _FREE_TAIL.match(step) is not None


def nearest_step(step: str) -> str | None:
    """The step id most like a misspelled one, with the numbers that were given."""
    id = StepId.parse(step)
    found = nearest(id.shape, SHAPES, 0.5)
    if found is None:
        return None
    numbers = iter(re.findall(r"(?<==)\d+|(?<=/)\d+$", step))
    filled = found.replace("STREAM", id.stream or "STREAM")
    return re.sub(r"(?<==)N|(?<=/)N$", lambda m: next(numbers, m.group()), filled)
