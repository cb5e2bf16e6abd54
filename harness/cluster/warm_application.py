"""The smallest application that does what every run does: it counts the lines of each content."""

from __future__ import annotations

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
class Times:
    count: int = 0


@decoder
def line(data: bytes) -> str:
    return data.decode()


@key_extractor
def content(text: str) -> str:
    return text


@state_computation(state=Times)
def count(text: str, times: Times) -> int:
    times.count += 1
    return times.count


@encoder
def number(times: int) -> bytes:
    return b"%d" % times


app = application(
    "warm_up",
    source("lines", line).key_by(content).to(count).to_sink(sink("numbers", number)),
)
