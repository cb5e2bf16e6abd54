"""Where Prometheus asks for a run's figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from bettong.engine.metrics.collector import Collector
from bettong.engine.metrics.histogram import Histogram
from bettong.engine.net.access import ListenConfig
from bettong.engine.net.http import TEXT, Answer, HttpListener
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BOUNDS_NS = tuple(1000 * 4**n for n in range(15))  # 1 µs to 268 s


class Endpoint(HttpListener):
    """Answers ``GET /metrics``.

    Raises:
        UsageError: the address is not safe or cannot be had, or prometheus_client is missing.
    """

    def __init__(self, access: ListenConfig, collector: Collector) -> None:
        try:
            from prometheus_client import CollectorRegistry
        except ImportError as e:
            raise UsageError(
                "metrics for Prometheus need prometheus_client: pip install 'bettong[metrics]'"
            ) from e
        self._registry = CollectorRegistry()
        self._registry.register(_Exported(collector))
        super().__init__(access, "bettong-metrics")

    def respond(self, path: str) -> Answer:
        from prometheus_client import generate_latest

        if path != "/metrics":
            return 404, TEXT, b"there is only /metrics\n"
        return 200, "text/plain; version=0.0.4; charset=utf-8", generate_latest(self._registry)


class _Exported:
    """A run's figures as Prometheus names them."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        with self._collector.lock:
            yield from list(self._metrics())

    def _metrics(self) -> Iterator[Metric]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        f = self._collector.figures
        histogram = HistogramMetricFamily("bettong_batch_seconds", "Time that a batch took")
        histogram.add_metric([], *_exported(f.batch_ns))
        yield histogram
        histogram = HistogramMetricFamily(
            "bettong_step_message_seconds", "Time that a step took for a message", labels=["step"]
        )
        for step, seen in sorted(f.steps.items()):
            histogram.add_metric([step], *_exported(seen))
        yield histogram
        counters: list[tuple[str, str, str, Mapping[str, float]]] = [
            ("messages", "Messages that batches have read", "stream", f.messages),
            ("failed_messages", "Messages on which a function failed", "step", f.failed),
            ("driver_seconds", "Time of the driver's parts of batches", "part", f.driver),
            ("task_seconds", "Time of the tasks' parts of batches", "part", f.tasks),
            ("spark_seconds", "Time of Spark's parts of batches", "part", f.spark),
        ]
        for name, text, label, values in counters:
            counter = CounterMetricFamily(f"bettong_{name}", text, labels=[label])
            for value, number in sorted(values.items()):
                counter.add_metric([value], number)
            yield counter
        waiting = GaugeMetricFamily(
            "bettong_waiting_messages", "Messages that are in no batch yet", labels=["stream"]
        )
        for stream, number in sorted(f.waiting.items()):
            waiting.add_metric([stream], number)
        yield waiting
        for what in ("rows", "bytes", "files"):
            gauge = GaugeMetricFamily(
                f"bettong_state_{what}", f"State log: {what}", labels=["state"]
            )
            for state, size in sorted(f.state.items()):
                gauge.add_metric([state], size[what])
            yield gauge


def _exported(seen: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Cumulative counts by upper bound, and the sum."""
    buckets = [(f"{ns / 1e9:g}", float(seen.at_most(ns))) for ns in _BOUNDS_NS]
    return [*buckets, ("+Inf", float(seen.count))], seen.total / 1e9
