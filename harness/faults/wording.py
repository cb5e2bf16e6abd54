"""Moments and links in words, for someone who has never seen the system."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import StepId

_STEPS: Mapping[str, str] = {
    "sender.connect/STREAM": "the sender connected",
    "sender.send/STREAM/N": "{message} was sent",
    "sender.forget/STREAM/N": "the sender forgot {message}",
    "gateway.start": "the gateway had opened what was on its disk",
    "gateway.create/STREAM": "the gateway had a journal for {stream}",
    "gateway.append/STREAM/N": "the gateway had {message} in its journal",
    "gateway.ack/STREAM/N": "the gateway acknowledged {message}",
    "gateway.release/STREAM/N": "the gateway released {message}",
    "epoch=N/take": "epoch {epoch} was taken",
    "epoch=N/sink.open": "epoch {epoch} of the query was opened",
    "receiver.start": "the receiver had opened what was on its disk",
    "receiver.create": "the receiver had a ledger",
    "receiver.open/epoch=N": "the receiver knew epoch {epoch}",
    "batch=N/source.plan": "the messages of batch {batch} were chosen",
    "batch=N/source.note": "it was noted what batch {batch} takes",
    "batch=N/offsets": "Spark had noted the offsets of batch {batch}",
    "batch=N/stage=N/p=N/a=N/task": "task {part} of stage {stage} of batch {batch} ran",
    "batch=N/p=N/a=N/source.read": "part {part} of batch {batch} was read",
    "batch=N/p=N/a=N/part=N/source.read": "piece {piece} of part {part} of batch {batch} was read",
    "batch=N/p=N/a=N/state.write": "the state of part {part} of batch {batch} was written",
    "batch=N/level=N/p=N/a=N/state.write": "the state of part {part} of batch {batch} was written",
    "batch=N/p=N/a=N/sink.prepare": "part {part} of batch {batch} was handed over",
    "batch=N/level=N/p=N/a=N/sink.prepare": "part {part} of batch {batch} was handed over",
    "batch=N/p=N/a=N/part=N/sink.prepare": "piece {piece} of part {part} of batch {batch} was \
handed over",
    "batch=N/level=N/p=N/a=N/part=N/sink.prepare": "piece {piece} of part {part} of batch {batch} \
was handed over",
    "receiver.prepare/batch=N/p=N/a=N/part=N": "the receiver had staged piece {piece} of part \
{part} of batch {batch}",
    "receiver.prepare/batch=N/p=N/a=N": "the receiver had staged part {part} of batch {batch}",
    "batch=N/state.manifest": "version {batch} of the state was named",
    "batch=N/sink.commit": "the receiver was told to commit batch {batch}",
    "receiver.commit/batch=N": "the receiver had made batch {batch} visible",
    "batch=N/commits": "Spark had noted that batch {batch} was done",
    "batch=N/source.commit": "the gateway was told that batch {batch} was done",
    "batch=N/p=N/state.merge": "the state files of part {part} were merged after batch {batch}",
}


def amid(point: Point) -> str:
    """When something is done within a step, or after it, e.g. ``while version 1 was named``."""
    words = moment(point)
    return words if point.phase == "after" else f"while {words.partition(' ')[2]}"


def moment(point: Point) -> str:
    """A moment of a run, e.g. ``before the receiver was told to commit batch 1``."""
    id = StepId.parse(point.step)
    words = _STEPS.get(id.shape)
    if words is None:
        return str(point)
    happened = words.format(
        message="/".join(id.message or ()),
        stream=id.stream,
        epoch=id.epoch,
        batch=id.batch,
        stage=id.stage,
        part=id.partition,
        piece=id.part,
    )
    reported = f"{point.phase} {happened}" + (f" ({id.name})" if id.name else "")
    return reported if point.occurrence == 1 else f"{reported} (time {point.occurrence})"


def ends_in_words(link: str) -> str:
    """The two ends of a link."""
    a, _, b = link.partition("->")
    return f"the {a} to the {b}"


def ordinal(n: int) -> str:
    """``first``, ``second``, ``11th``."""
    if n < 4:
        return ("first", "second", "third")[n - 1]
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
