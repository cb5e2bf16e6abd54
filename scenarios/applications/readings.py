"""Readings of sensors: sums of every two, of minutes and of runs, some of them late, and the last
few of each sensor in bytes that are no text."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import NamedTuple

from bettong.engine import (
    Fired,
    application,
    computation,
    count_window,
    decoder,
    encoder,
    key_extractor,
    session,
    sink,
    source,
    state_computation,
    state_entity,
    tumbling,
    watermark,
)
from bettong.engine.codecs.state import BytesCodec
from bettong.scenarios.applications.running_sum import Sum

MINUTE = 60
GAP = 20
LATE_BY = 30
LAST = 3


class Reading(NamedTuple):
    sensor: int
    at: float
    value: int


@dataclass
class Latest:
    """The last few values of a sensor."""

    values: tuple[int, ...] = ()


def _packed(latest: Latest) -> bytes:
    return struct.pack(f">{len(latest.values)}q", *latest.values)


def _unpacked(data: bytes, version: int) -> Latest:
    return Latest(struct.unpack(f">{len(data) // 8}q", data))


@decoder
def reading(data: bytes) -> Reading:
    sensor, at, value = data.split(b",")
    return Reading(int(sensor), float(at), int(value))


@key_extractor
def sensor(message: Reading) -> int:
    return message.sensor


@key_extractor
def sensor_in_bytes(message: Reading) -> bytes:
    return struct.pack(">H", message.sensor)


def when(message: Reading) -> float:
    return message.at


def add(message: Reading, total: Sum) -> None:
    total.total += message.value


def join(total: Sum, other: Sum) -> None:
    total.total += other.total


@computation
def said(fired: Fired) -> str:
    return f"from {fired.start:g} to {fired.end:g}: {fired.value.total}"


@state_computation(state=state_entity(Latest, codec=BytesCodec(_packed, _unpacked)))
def last_few(message: Reading, latest: Latest) -> bytes:
    latest.values = (*latest.values, message.value)[-LAST:]
    return _packed(latest)


@encoder
def text(value: str) -> bytes:
    return value.encode()


@encoder
def as_it_is(value: bytes) -> bytes:
    return value


_readings = source("readings", reading)
_by_sensor = _readings.key_by(sensor)
_pairs = _by_sensor.to(count_window("pairs", Sum, add, 2))
_minutes = _by_sensor.merge(watermark(_readings, when, every=4)).to(
    tumbling("minutes", Sum, add, when, MINUTE, late="oldest")
)
_again = _by_sensor.to(
    tumbling("minutes_again", Sum, add, when, MINUTE, late="fire again", keep=LATE_BY)
)
_runs = _by_sensor.to(session("runs", Sum, add, when, GAP, join, delay=LATE_BY))
_windows = [
    windows.to(said, name=f"said_of_{name}")
    for name, windows in (
        ("pairs", _pairs),
        ("minutes", _minutes),
        ("minutes_again", _again),
        ("runs", _runs),
    )
]
app = application(
    "readings",
    _windows[0].merge(*_windows[1:]).to_sink(sink("windows", text)),
    _readings.key_by(sensor_in_bytes).to(last_few).to_sink(sink("latest", as_it_is)),
)


def messages(count: int, seed: int = 0, sensors: int = 3) -> dict[str, list[bytes]]:
    """Input of this application: a reading every few seconds, some of them late."""
    chance = random.Random(seed)
    return {
        "readings": [
            b"%d,%d,%d"
            % (chance.randrange(sensors), max(0, 7 * n - late), chance.randrange(-9, 99))
            for n, late in enumerate(chance.choices((0, 15, 40, 80), (6, 1, 1, 1), k=count))
        ]
    }
