"""How long a message takes: from when it was due until its output has been handed on.

Messages are due at a steady rate, whatever becomes of those before them, so a message that waits
behind a slow one is late by that as well (no coordinated omission). ``plain`` is the same four
functions over a dict, under the same schedule: what the machine itself adds to every figure.
Every output of every way is checked.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from bettong.engine.events.engine import EventEngine
from bettong.engine.metrics.histogram import Histogram
from bettong.lineage.results import environment
from bettong.scenarios.applications import running_sum
from bettong.scenarios.benchmarks.errors import WrongResultError

RATE = 50_000
KEYS = 20_000
SECONDS = 4
FULL_SECONDS = 60
EVERY = 50_000

Push = Callable[[bytes], object]
Close = Callable[[], object]
Make = Callable[[list[bytes]], tuple[Push, Close]]


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    count = RATE * (FULL_SECONDS if full else SECONDS)
    messages = running_sum.messages(count, keys=KEYS)["amounts"]
    expected = _expected(messages)
    plain = _measured(messages, _plain, expected)
    seen = {"event by event": _measured(messages, _engine(None), expected)}
    with tempfile.TemporaryDirectory() as name:
        seen["state written every second"] = _measured(messages, _engine(Path(name)), expected)
    figures = {"plain loop, p50": _figure(plain, 0.5), "plain loop, p99.9": _figure(plain, 0.999)}
    for way, latencies in seen.items():
        for part in (0.5, 0.99, 0.999):
            beside = plain.quantile(part)
            figures[f"{way}, p{100 * part:g}"] = {
                **_figure(latencies, part),
                "versus": f"plain loop: {beside / 1000:.1f}",
                "ratio": round(latencies.quantile(part) / max(beside, 1), 2),
            }
    return {"name": "latency", "figures": figures, "environment": environment()}


def _figure(latencies: Histogram, part: float) -> dict[str, Any]:
    return {"value": round(latencies.quantile(part) / 1000, 1), "unit": "us"}


def _expected(messages: Sequence[bytes]) -> list[bytes]:
    totals: dict[bytes, int] = {}
    outputs = []
    for message in messages:
        key, _, number = message.partition(b",")
        totals[key] = totals.get(key, 0) + int(number)
        outputs.append(b"%s %d" % (key, totals[key]))
    return outputs


def _plain(outputs: list[bytes]) -> tuple[Push, Close]:
    """The application's functions in a row."""
    parse, key, add, line = (
        running_sum.amount.call,
        running_sum.name.call,
        running_sum.add.call,
        running_sum.line.call,
    )
    state: dict[str, running_sum.Sum] = {}

    def push(data: bytes) -> None:
        message = parse(data)
        own = key(message)
        if own not in state:
            state[own] = running_sum.Sum()
        outputs.append(line(add(message, state[own])))

    return push, state.clear


def _engine(checkpoint: Path | None) -> Make:
    def made(outputs: list[bytes]) -> tuple[Push, Close]:
        def deliver(sink: str, ident: str, key: object, data: bytes) -> None:
            outputs.append(data)

        engine = EventEngine(running_sum.app, deliver, checkpoint, EVERY)
        return lambda data: engine.push("amounts", data), engine.close

    return made


def _measured(messages: Sequence[bytes], make: Make, expected: list[bytes]) -> Histogram:
    """The latencies of all messages but those of the first second."""
    outputs: list[bytes] = []
    push, close = make(outputs)
    done = np.zeros(len(messages), np.int64)
    gap = 1_000_000_000 // RATE
    gc.freeze()
    gc.disable()
    try:
        due = begin = perf_counter_ns()
        for place, message in enumerate(messages):
            while perf_counter_ns() < due:
                pass
            push(message)
            done[place] = perf_counter_ns()
            due += gap
    finally:
        gc.enable()
        gc.unfreeze()
        close()
    if outputs != expected:
        raise WrongResultError("the outputs are not the running sums")
    latencies = Histogram()
    late = done - (begin + gap * np.arange(len(messages)))
    latencies.add_all(np.maximum(late, 0)[RATE:])
    return latencies
