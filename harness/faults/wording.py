"""Moments and links in words, for someone who has never seen the system."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bettong.harness.faults.point import Point
from bettong.harness.faults.step_ids import split_name

_STEPS: Sequence[tuple[str, str]] = (
    (r"sender\.connect/(.+)", r"the sender connected"),
    (r"sender\.send/(.+)", r"\1 was sent"),
    (r"sender\.forget/(.+)", r"the sender forgot \1"),
    (r"gateway\.append/(.+)", r"the gateway had \1 in its journal"),
    (r"gateway\.ack/(.+)", r"the gateway acknowledged \1"),
    (r"gateway\.release/(.+)", r"the gateway released \1"),
    (r"epoch=(\d+)/take", r"epoch \1 was taken"),
    (r"epoch=(\d+)/.*open", r"epoch \1 of the query was opened"),
    (r"receiver\.open/epoch=(\d+)", r"the receiver knew epoch \1"),
    (r"batch=(\d+)/source\.plan", r"the messages of batch \1 were chosen"),
    (r"batch=(\d+)/offsets", r"Spark had noted the offsets of batch \1"),
    (r"batch=(\d+)/stage=(\d+)/p=(\d+)/a=\d+/task", r"task \3 of stage \2 of batch \1 ran"),
    (r"batch=(\d+)/p=(\d+)/a=\d+/source\.read", r"part \2 of batch \1 was read"),
    (r"batch=(\d+)/.*p=(\d+)/a=\d+/state\.write", r"the state of part \2 of batch \1 was written"),
    (r"batch=(\d+)/.*p=(\d+)/a=\d+/sink\.prepare", r"part \2 of batch \1 was handed over"),
    (r"receiver\.prepare/batch=(\d+)/p=(\d+).*", r"the receiver had staged part \2 of batch \1"),
    (r"batch=(\d+)/state\.manifest", r"version \1 of the state was named"),
    (r"batch=(\d+)/sink\.commit", r"the receiver was told to commit batch \1"),
    (r"receiver\.commit/batch=(\d+)", r"the receiver had made batch \1 visible"),
    (r"batch=(\d+)/commits", r"Spark had noted that batch \1 was done"),
    (r"batch=(\d+)/source\.commit", r"the gateway was told that batch \1 was done"),
)


def moment(point: Point) -> str:
    """A moment of a run, e.g. ``before the receiver was told to commit batch 1``."""
    step, name = split_name(point.step)
    for pattern, words in _STEPS:
        found = re.fullmatch(pattern, step)
        if found:
            reported = f"{point.phase} {found.expand(words)}"
            reported += f" ({name})" if name else ""
            return reported if point.occurrence == 1 else f"{reported} (time {point.occurrence})"
    return str(point)


def ends_in_words(link: str) -> str:
    """The two ends of a link."""
    a, _, b = link.partition("->")
    return f"the {a} to the {b}"
