"""Doubles each number, and says how many there were and what they sum up to so far."""

from __future__ import annotations

import random
from dataclasses import dataclass

from bettong.engine import (
    application,
    computation,
    decoder,
    encoder,
    key_extractor,
    predicate,
    sink,
    source,
    state_computation,
)


@dataclass
class Counter:
    count: int = 0
    total: int = 0


@decoder
def number(data: bytes) -> int:
    return int(data)


@predicate
def positive(value: int) -> bool:
    return value > 0


@computation
def double(value: int) -> int:
    return 2 * value


@key_extractor
def everything(value: int) -> str:
    return "all"


@state_computation(state=Counter)
def count(value: int, counter: Counter) -> tuple[int, int]:
    counter.count += 1
    counter.total += value
    return counter.count, counter.total


@encoder
def text(value: object) -> bytes:
    return str(value).encode()


@encoder
def so_far(counted: tuple[int, int]) -> bytes:
    return b"%d numbers, %d in all" % counted


_doubled = source("numbers", number).filter(positive).to(double)
app = application(
    "counting",
    _doubled.to_sink(sink("doubled", text)),
    _doubled.key_by(everything).to(count).to_sink(sink("counted", so_far)),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Input of this application."""
    chance = random.Random(seed)
    return {"numbers": [b"%d" % chance.randrange(-10, 100) for _ in range(count)]}
