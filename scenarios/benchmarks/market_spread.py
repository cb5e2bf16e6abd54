"""Market Spread: orders checked against the market, by one Python function a message.

Wallaroo's figure is 187,500 messages a second a core, in Pony. ``plain`` is the application's
functions in a Python loop over a dict, with nothing that a crash would leave: what the language
costs. Figures are per second of CPU, so that what else the machine does counts little, and all
rejections are compared with the plain loop's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bettong.engine.config import RunConfig
from bettong.engine.events.engine import EventEngine
from bettong.engine.in_process import run_in_process
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.sources.base import ArrowSource
from bettong.lineage.results import environment
from bettong.scenarios.applications import market_spread
from bettong.scenarios.benchmarks.errors import WrongResultError

PONY = 187_500
MESSAGES = 1_000_000
FULL_MESSAGES = 20_000_000
BATCH = 125_000
REJECTED = 1 / 7_000

Streams = Mapping[str, Sequence[bytes]]


def bench(full: bool = False) -> dict[str, Any]:
    """The figures; raises WrongResultError."""
    count = (FULL_MESSAGES if full else MESSAGES) // 2
    streams = market_spread.messages(count, seed=3, rejected=REJECTED)
    expected: list[bytes] = []
    plain = _rate(count, lambda: expected.extend(_plain(streams)))
    if not expected:
        raise WrongResultError("no order is rejected: nothing would be checked")
    with tempfile.TemporaryDirectory() as name:
        rates = {
            "in-process, durable": _in_process(streams, Path(name), expected),
            "event by event": _event_by_event(streams, expected),
        }
    figures = {"plain loop": {"value": round(plain), "unit": "messages/CPU s"}}
    for way, rate in rates.items():
        figures[way] = {
            "value": round(rate),
            "unit": "messages/CPU s",
            "versus": f"plain loop: {plain:,.0f}",
            "ratio": round(rate / plain, 2),
        }
        figures[f"{way}, beside Wallaroo"] = {
            "value": round(rate),
            "unit": "messages/CPU s",
            "versus": f"Wallaroo in Pony, a core: {PONY:,}",
            "ratio": round(rate / PONY, 2),
        }
    return {"name": "market-spread", "figures": figures, "environment": environment()}


def _rate(count: int, action: Callable[[], object]) -> float:
    """Messages of both streams for a second of CPU."""
    begin = time.process_time()
    action()
    return 2 * count / (time.process_time() - begin)


def _plain(streams: Streams) -> list[bytes]:
    quote, update = market_spread.quote.call, market_spread.update_market.call
    order, check = market_spread.order.call, market_spread.check_order.call
    line = market_spread.rejection.call
    markets: dict[str, market_spread.Market] = {}
    rejections = []
    for one, other in zip(streams["nbbo"], streams["orders"], strict=True):
        quoted, ordered = quote(one), order(other)
        for symbol in (quoted.symbol, ordered.symbol):
            if symbol not in markets:
                markets[symbol] = market_spread.Market()
        update(quoted, markets[quoted.symbol])
        rejected = check(ordered, markets[ordered.symbol])
        if rejected is not None:
            rejections.append(line(rejected))
    return rejections


def _in_process(streams: Streams, folder: Path, expected: list[bytes]) -> float:
    sources = {}
    for stream, messages in streams.items():
        table = pa.table({"message": pa.array(messages, pa.binary())})
        with pa.ipc.new_file(str(folder / stream), table.schema) as writer:
            writer.write_table(table, max_chunksize=1 << 16)
        sources[stream] = ArrowSource(folder / stream)
    out = FileSink(folder / "rejected")
    config = RunConfig(folder / "checkpoint", sources, {"rejected": out}, batch_messages=BATCH)
    count = len(streams["nbbo"])
    rate = _rate(count, lambda: run_in_process(market_spread.app, config))
    _check([row["data"].encode() for row in read_rows(out.directory)], expected)
    return rate


def _event_by_event(streams: Streams, expected: list[bytes]) -> float:
    rejections: list[bytes] = []
    engine = EventEngine(market_spread.app, lambda *output: rejections.append(output[3]))

    def push() -> None:
        for one, other in zip(streams["nbbo"], streams["orders"], strict=True):
            engine.push("nbbo", one)
            engine.push("orders", other)

    rate = _rate(len(streams["nbbo"]), push)
    _check(rejections, expected)
    return rate


def _check(seen: list[bytes], expected: list[bytes]) -> None:
    if sorted(seen) != sorted(expected):
        raise WrongResultError(f"{len(seen)} rejections, {len(expected)} expected")
