"""Degrees Celsius in, degrees Fahrenheit out: no key and no state."""

from __future__ import annotations

import random
import struct

from bettong.engine import application, computation, decoder, encoder, sink, source


@decoder
def degrees(data: bytes) -> float:
    """A big-endian 32-bit floating point number."""
    return float(struct.unpack(">f", data)[0])


@computation
def multiply(celsius: float) -> float:
    return celsius * 1.8


@computation
def add(scaled: float) -> float:
    return scaled + 32


@encoder
def packed(fahrenheit: float) -> bytes:
    return struct.pack(">f", fahrenheit)


app = application(
    "celsius",
    source("celsius_degrees", degrees).to(multiply).to(add).to_sink(sink("fahrenheit", packed)),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Input of this application."""
    chance = random.Random(seed)
    return {"celsius_degrees": [struct.pack(">f", chance.uniform(-60, 60)) for _ in range(count)]}
