"""Sums of each key over windows of ten seconds, among keys that are forgotten when they have been
silent: time is told to all of them, so that windows fire and keys are gone without a message of
their own."""

from __future__ import annotations

import random
from typing import NamedTuple

from bettong.engine import (
    Fired,
    application,
    decoder,
    encoder,
    expiring,
    key_extractor,
    sink,
    source,
    tumbling,
    watermark,
)
from bettong.scenarios.applications.running_sum import Sum

SIZE = 10
FORGOTTEN_AFTER = 25


class Amount(NamedTuple):
    name: str
    at: float
    number: int


@decoder
def amount(data: bytes) -> Amount:
    name, at, number = data.decode().split(",")
    return Amount(name, float(at), int(number))


@key_extractor
def name(message: Amount) -> str:
    return message.name


def when(message: Amount) -> float:
    return message.at


def add(message: Amount, total: Sum) -> None:
    total.total += message.number


@encoder
def text(given: Fired | str) -> bytes:
    if isinstance(given, str):
        return given.encode()
    return b"from %d to %d: %d" % (given.start, given.end, given.value.total)


_amounts = source("amounts", amount)
_windows = tumbling("windows", Sum, add, when, SIZE)
app = application(
    "quiet_sums",
    _amounts.key_by(name)
    .merge(watermark(_amounts, when, every=2))
    .to(expiring(_windows, when, FORGOTTEN_AFTER, lambda windows: ["forgotten"]))
    .to_sink(sink("sums", text)),
)


def messages(count: int, seed: int = 0, keys: int = 5) -> dict[str, list[bytes]]:
    """Input of this application: amounts of a few keys, with silences between."""
    chance, at, lines = random.Random(seed), 0, []
    for n in range(count):
        at += chance.choice((1, 3, SIZE, FORGOTTEN_AFTER + 1))
        lines.append(b"key%d,%d,%d" % (chance.randrange(keys), at, n % 100))
    return {"amounts": lines}
