"""A script as runs see it: fed below the run's own folder or in its topics, done when its query has
nothing left to do."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bettong.harness.queries.faults.operations import OperationalEvent
from bettong.harness.queries.job.feed import LineSender, Sender, TopicSender
from bettong.harness.queries.job.plan import EMPTY_BATCHES, has_timers
from bettong.harness.queries.job.script import Lines
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.run.checkpoints import checkpoint_of
from bettong.harness.queries.script import KAFKA
from bettong.harness.queries.sink.file_steps import OUTSIDE, STEP
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import TraceEvent

IDLE = "query.idle"
PROGRESS = "query.progress"
TERMINATED = "query.terminated"
_PATIENCE_S = 300.0  # a process that starts Spark itself, on a machine that has other work


@dataclass
class ScriptWorkload(JobWorkload):
    """One script and its inputs; where its checkpoint is, its own steps tell."""

    patience_s: float = _PATIENCE_S
    _idle: threading.Event = field(default_factory=threading.Event)
    _incarnation: int = 0
    """The one that was started last."""
    _checkpoints: set[Path] = field(default_factory=set)
    """Those that it has written to."""
    _empty: int = 0
    _has_ended: bool = False
    """Whether a query of its process has ended when all was consumed."""
    _has_timers: bool = False

    def begin(self, run: str, state: Path, event: OperationalEvent) -> None:
        """A new run: nothing is fed yet, and nothing is known of the checkpoint."""
        super().begin(run, state, event)
        self.feed.checkpoint = None
        self._empty, self._has_timers = 0, False

    def senders(self) -> dict[str, Sender]:
        """Lines go to the topic or folder that the script reads."""
        found: dict[str, Sender] = {}
        for name, given in self.job.inputs.items():
            assert isinstance(given, Lines)
            if given.topic:
                found[name] = TopicSender(given.topic, self.brokers[KAFKA])
            else:
                folder = self._state / "work" / given.folder
                found[name] = LineSender(folder, given.suffix, given.header, given.folder)
        return found

    def starts(self, incarnation: int) -> None:
        """The new process has not told yet that it is idle."""
        self._idle.clear()
        self._incarnation = incarnation
        self._checkpoints.clear()
        self._empty, self._has_ended = 0, False
        super().starts(incarnation)

    def arguments(self, incarnation: int, layout: int, anew: bool) -> Mapping[str, Any]:
        """Settings, and what of it is a step; where everything is, the script is told by its
        variables."""
        found = super().arguments(incarnation, layout, anew)
        return {"settings": found["settings"], "elsewhere": self.target.elsewhere}

    def observe(self, event: TraceEvent) -> None:
        """Where the checkpoint is, is learned from the first file of it that is written, anew in
        each incarnation, which may take another; a second one is another query's, which nothing
        would feed."""
        if (found := checkpoint_of(event)) is not None and event.incarnation == self._incarnation:
            self.feed.checkpoint = self.feed.checkpoint if self._checkpoints else found
            self._checkpoints.add(found)
        super().observe(event)
        if event.step == PROGRESS and event.phase == "before":
            self._empty = 0 if event.detail["rows"] else self._empty + 1
            self._has_timers |= has_timers(event.detail.get("plan", ""))
        done = event.step == IDLE and self.feed.satisfied
        if event.step == TERMINATED and event.phase == "before" and self.feed.satisfied:
            # What it does after a query is done when another one, which finds nothing, has ended.
            done, self._has_ended = self._has_ended, True
        if done or len(self._checkpoints) > 1 or self.endless(()) or self._is_unseen(event):
            self._idle.set()

    def _is_unseen(self, event: TraceEvent) -> bool:
        """Whether a query tells of itself, or a batch of it writes, and no file of its checkpoint
        was seen, the first of which it writes before: a hook is not in place, and nothing would be
        fed any more."""
        writes = event.step.endswith(STEP) and OUTSIDE not in event.detail
        return (writes or event.step in (IDLE, PROGRESS)) and self.feed.checkpoint is None

    def endless(self, facts: Iterable[Mapping[str, Any]]) -> bool:
        """Whether it plans batch after batch without data, for the time goes on."""
        return self._has_timers and self._empty >= EMPTY_BATCHES

    def finished(self) -> bool:
        """Whether the query has nothing left to do for now."""
        return self._idle.is_set()

    def expect_checkpoint(self) -> None:
        """Raises UsageError when the script keeps its checkpoint where it outlives the run: the
        next run would go on from there."""
        found = self.feed.checkpoint
        work = self._state / "work"
        if found is not None and not found.resolve().is_relative_to(work.resolve()):
            raise UsageError(
                f"{self.job.name}: its checkpoint is {found}, not below {{work}}, the empty folder "
                "of each run: have the script take its checkpointLocation from an environment "
                "variable, and set that: --set CKPT={work}/ckpt"
            )

    def checkpoint(self, state: Path) -> Path | None:
        """Where the script keeps it, once that is known."""
        return self._feed.checkpoint if self._feed is not None else None

    def drained(self, committed: int, failed: bool) -> bool:
        """All was consumed, and the query said that it is idle or ended by itself."""
        return not failed and self.feed.done
