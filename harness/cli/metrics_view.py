"""What the lines of a metrics file say, as a picture for a terminal."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from bettong.harness.cli.printing import cell
from bettong.lineage.errors import UsageError

RECENT = 20
"""Over how many batches rates are taken."""


@dataclass
class MetricsView:
    """The figures so far.

    Attributes:
        name: of the file, for errors.
        recent: the last batches' lines.
        spark: Spark's own split of the last batch that it reported.
        messages: read since the file began, by stream.
    """

    name: str
    recent: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT))
    spark: Mapping[str, float] = field(default_factory=dict)
    messages: Counter[str] = field(default_factory=Counter)

    def add(self, lines: Iterable[str]) -> None:
        """Take whole lines of the file; raises UsageError for what is no metrics file."""
        for line in lines:
            try:
                reported = json.loads(line)
                if reported["kind"] == "spark":
                    self.spark = reported["driver"]
                else:
                    self.messages.update(reported["messages"])
                    self.recent.append(reported)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
                raise UsageError(f"{self.name}: not a line of a metrics file: {line[:80]!r}") from e

    def picture(self) -> RenderableType:
        """Tables of it all; raises UsageError when a line has not what a metrics file's have."""
        if not self.recent:
            return "no batch yet"
        try:
            return self._tables()
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as e:
            line = str(self.recent[-1])[:80]
            raise UsageError(
                f"{self.name}: not a line of a metrics file: {line}: {type(e).__name__} {e}"
            ) from e

    def _tables(self) -> RenderableType:
        last = self.recent[-1]
        rate = sum(sum(b["messages"].values()) for b in self.recent) / max(
            sum(b["seconds"] for b in self.recent), 1e-9
        )
        head = Table.grid(padding=(0, 3))
        head.add_row(
            cell(f"batch {last['batch']}"),
            cell(f"epoch {last['epoch']}"),
            f"{1000 * last['seconds']:.1f} ms",
            f"{rate:,.0f} messages/s over {len(self.recent)} batches",
        )
        return Group(head, self._streams(), self._steps(), self._split(), self._states())

    def _streams(self) -> Table:
        table = Table("stream", "messages", "waiting", box=None)
        for stream, count in sorted(self.messages.items()):
            waiting = self.recent[-1]["waiting"].get(stream)
            table.add_row(cell(stream), f"{count:,}", "" if waiting is None else f"{waiting:,}")
        return table

    def _steps(self) -> Table:
        table = Table("step", "messages", "p50 µs", "p99 µs", "failed", box=None)
        last = self.recent[-1]
        for step, reported in last["steps"].items():
            failed = last["failed"].get(step, 0)
            latencies = (f"{reported['p50_us']:.1f}", f"{reported['p99_us']:.1f}")
            table.add_row(cell(step), f"{reported['messages']:,}", *latencies, f"{failed:,}")
        return table

    def _split(self) -> Table:
        table = Table("part of the batch", "ms", box=None)
        last = self.recent[-1]
        for who, split in (
            ("driver", last["driver"]),
            ("tasks", last["tasks"]),
            ("Spark", self.spark),
        ):
            for part, seconds in split.items():
                table.add_row(cell(f"{who}: {part}"), f"{1000 * seconds:.1f}")
        return table

    def _states(self) -> Table:
        table = Table("state", "rows", "bytes", "files", box=None)
        for state, size in sorted(self.recent[-1]["state"].items()):
            table.add_row(cell(state), *(f"{size[what]:,}" for what in ("rows", "bytes", "files")))
        return table
