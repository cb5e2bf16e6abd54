"""What the driver keeps of a run's figures, and the lines that it writes of each batch."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bettong.engine.metrics.histogram import Histogram
from bettong.engine.state.manifest import Manifest
from bettong.engine.storage.disk import OS_DISK, AppendFile
from bettong.lineage.errors import UsageError


@dataclass
class Figures:
    """Everything that has been measured since the run began; seconds unless said otherwise.

    Attributes:
        batches: how many have been done.
        batch_ns: how long they took.
        messages: for each stream how many messages were in them.
        steps: for each step the time that one message took.
        driver: for each part of the driver's work how long it took.
        tasks: for each part of the tasks' work how long it took, summed over tasks.
        waiting: for each stream how many messages are there and in no batch yet.
        state: for each state rows, bytes and files of its log.
        failed: for each step on how many messages its function has failed.
        spark: for each of Spark's own parts of a batch how long it took.
    """

    batches: int = 0
    batch_ns: Histogram = field(default_factory=Histogram)
    messages: Counter[str] = field(default_factory=Counter)
    steps: dict[str, Histogram] = field(default_factory=lambda: defaultdict(Histogram))
    driver: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    waiting: dict[str, int] = field(default_factory=dict)
    state: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    spark: Counter[str] = field(default_factory=Counter)


class Collector:
    """Adds up what batches report.

    Attributes:
        figures: read under ``lock``.
    """

    def __init__(self, file: Path | None) -> None:
        self.figures = Figures()
        self.lock = threading.Lock()
        self._file: AppendFile | None = None
        self._last_progress = -1
        if file is not None:
            try:
                self._file = OS_DISK.append_to(file)
            except OSError as e:
                raise UsageError(f"metrics file {file} cannot be written: {e.strerror}") from e

    def batch(
        self,
        base: Manifest,
        manifest: Manifest,
        reports: Iterable[Mapping[str, Any]],
        split: Mapping[str, float],
        ends: Mapping[str, int],
    ) -> None:
        """A batch is done.

        Args:
            base: the state before it.
            manifest: the state after it.
            reports: of its tasks.
            split: how long the driver's parts took.
            ends: for each stream how many messages are there by now.
        """
        took = round(sum(split.values()) * 1e9)
        messages = {s: n - base.offsets.get(s, 0) for s, n in manifest.offsets.items()}
        tasks: Counter[str] = Counter()
        steps: dict[str, Histogram] = defaultdict(Histogram)
        for measured in (r["measured"] for r in reports if "measured" in r):
            for name, blocks in measured["steps"].items():
                for count, ns in blocks:
                    steps[name].add(ns // max(count, 1), count)
            tasks.update({name: ns / 1e9 for name, ns in measured["parts"].items()})
        waiting = {s: end - manifest.offsets.get(s, 0) for s, end in ends.items()}
        with self.lock:
            f = self.figures
            f.batches += 1
            f.batch_ns.add(took)
            f.messages.update(messages)
            f.driver.update(split)
            f.tasks.update(tasks)
            for name, seen in steps.items():
                f.steps[name].merge(seen)
            f.waiting = waiting
            f.state = _sizes(manifest)
            f.failed = dict(manifest.failed)
        self._write(
            {
                "kind": "batch",
                "batch": manifest.batch,
                "epoch": manifest.epoch,
                "at": round(time.time(), 3),
                "seconds": round(took / 1e9, 6),
                "messages": messages,
                "per_second": round(sum(messages.values()) * 1e9 / max(took, 1)),
                "driver": _rounded(split),
                "tasks": _rounded(tasks),
                "steps": {name: _of_step(seen) for name, seen in steps.items()},
                "waiting": waiting,
                "state": f.state,
                "failed": f.failed,
            }
        )

    def progress(self, reported: Mapping[str, Any] | None) -> None:
        """What Spark says of a batch; told again it changes nothing."""
        if reported is None or reported["batchId"] <= self._last_progress:
            return
        self._last_progress = reported["batchId"]
        split = {name: ms / 1000 for name, ms in reported["durationMs"].items()}
        with self.lock:
            self.figures.spark.update(split)
        self._write({"kind": "spark", "batch": reported["batchId"], "driver": _rounded(split)})

    def close(self) -> None:
        """Nothing more will be told."""
        if self._file is not None:
            self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def _of_step(seen: Histogram) -> dict[str, Any]:
    return {
        "messages": seen.count,
        "seconds": round(seen.total / 1e9, 6),
        "p50_us": seen.quantile(0.5) / 1000,
        "p99_us": seen.quantile(0.99) / 1000,
    }


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(s, 6) for name, s in seconds.items()}


def _sizes(manifest: Manifest) -> dict[str, dict[str, int]]:
    sizes: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in manifest.files:
        sizes[entry.state].update(rows=entry.rows, bytes=entry.length, files=1)
    return {state: dict(size) for state, size in sizes.items()}
