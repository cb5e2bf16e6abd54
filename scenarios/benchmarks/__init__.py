"""Measurements: figures are ratios to a peer or to a plain way, taken in the same run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bettong.harness.catalog import CatalogEntry

_TITLES: Mapping[str, str] = {
    "check": "checks of stored histories beside plain ways of doing the same",
    "disk": "what the disk layer costs beside the plain calls that it stands on",
    "engine": "throughput beside Bytewax and Spark's own operators",
    "ingest": "messages in and rows out beside a plain socket and a plain file",
    "latency": "latency of the in-process runner",
    "ldfi": "executions to the first violation beside random search",
    "market-spread": "Market Spread on both runners",
    "price": "what durability, listeners and steps cost",
    "proxies": "round trips and bulk bytes through the proxies beside none",
    "sinks": "fault runs a minute of check-sink beside killed JVMs",
    "spark-latency": "latency on Spark and in-process, sender to reader",
    "state-size": "what a batch costs by how much is stored",
    "steps": "what a step costs, idle and under test",
    "workers": "throughput by number of workers, each on a machine of its own",
    "mutants": "mutants of the engine and of right sinks, each searched until a fault shows it",
    "shipped-mutants": "the search beside random and each-step on the mutants that ship",
}


def entries() -> list[CatalogEntry]:
    """Every measurement."""
    return [
        CatalogEntry(name, "bench", title, partial(_bench, name.replace("-", "_")))
        for name, title in _TITLES.items()
    ]


def _bench(module: str) -> Callable[..., dict[str, Any]]:
    bench: Callable[..., dict[str, Any]] = importlib.import_module(f"{__name__}.{module}").bench
    return bench
