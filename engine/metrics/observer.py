"""Who watches a run's batches, and tells others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bettong.engine.metrics.collector import Collector
from bettong.engine.metrics.config import Metrics
from bettong.engine.metrics.endpoint import Endpoint
from bettong.engine.sources.base import StreamSource
from bettong.engine.state.manifest import Manifest


class Watch:
    """Takes the times of the parts of one batch, in the order in which the driver does them."""

    def __init__(self) -> None:
        self.split: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.split[name] = self.split.get(name, 0.0) + time.perf_counter() - begin


class Observer:
    """Collects the figures of one start of a run, writes them and answers for them.

    Raises:
        UsageError: the file or the address cannot be used.
    """

    def __init__(self, metrics: Metrics, sources: Mapping[str, StreamSource]) -> None:
        self._sources = sources
        self.collector = Collector(metrics.file)
        self.endpoint = None
        if metrics.listen is not None:
            self.endpoint = Endpoint(metrics.listen, self.collector)

    def batch(
        self,
        base: Manifest,
        manifest: Manifest,
        reports: Iterable[Mapping[str, Any]],
        split: Mapping[str, float],
    ) -> None:
        """A batch is done."""
        ends = {stream: source.extent(0, 0).end for stream, source in self._sources.items()}
        self.collector.batch(base, manifest, reports, split, ends)

    def progress(self, reported: Mapping[str, Any]) -> None:
        """What Spark says of a batch."""
        self.collector.progress(reported)

    def close(self) -> None:
        """The run is over."""
        if self.endpoint is not None:
            self.endpoint.close()
        self.collector.close()
