"""The running sum of each key: ``apple,3`` then ``apple,4`` gives ``apple 3``, ``apple 7``."""

from __future__ import annotations

import random
from dataclasses import dataclass

from bettong.engine import (
    application,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
)


@dataclass
class Sum:
    total: int = 0


@decoder
def amount(data: bytes) -> tuple[str, int]:
    key, _, number = data.partition(b",")
    return key.decode(), int(number)


@key_extractor
def name(message: tuple[str, int]) -> str:
    return message[0]


@state_computation(state=Sum)
def add(message: tuple[str, int], total: Sum) -> tuple[str, int]:
    total.total += message[1]
    return message[0], total.total


@encoder
def line(total: tuple[str, int]) -> bytes:
    return b"%s %d" % (total[0].encode(), total[1])


app = application(
    "running_sum",
    source("amounts", amount).key_by(name).to(add).to_sink(sink("sums", line)),
)


def messages(count: int, seed: int = 0, keys: int = 26) -> dict[str, list[bytes]]:
    """Input of this application."""
    chance = random.Random(seed)
    return {"amounts": [b"key%d,%d" % (chance.randrange(keys), n % 100) for n in range(count)]}
