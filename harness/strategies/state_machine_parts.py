"""What the state machine of the engine puts around the in-process runner: a fuse that kills it, a
disk that a crash leaves as it was, a source and a sink in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from bettong.engine import steps
from bettong.engine.batch.protocol import Settings
from bettong.engine.config import RunConfig
from bettong.engine.errors import FencedError
from bettong.engine.graph import Application
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sources.base import Extent
from bettong.engine.state.inline import InlineExecutor
from bettong.engine.state.store import LocalStore
from bettong.engine.steps import Recorder, step
from bettong.engine.storage.simulated import Image, SimulatedDisk
from bettong.lineage.trace import MessageRange, TraceEvent

CrashPoint = Literal["step", "disk"]
IMAGES = 50


class Killed(BaseException):
    """The process is gone: nothing that follows in it has an effect."""


class Fuse:
    """Kills the process at one of its moments: before or after a step, after a change of its disk.

    Args:
        image: the files it starts with.
        kind: which moments count.
        moments: how many of these pass; None for a process that lives as long as it has work.
    """

    def __init__(self, image: Image, kind: CrashPoint = "step", moments: int | None = None) -> None:
        self.disk = SimulatedDisk(image, lambda: self.burn("disk", "a change of the disk"))
        self.kind = kind
        self.left = moments
        self.last = "idle"
        self.found: list[Image] | None = None

    def burn(self, kind: CrashPoint, what: str) -> None:
        """Pass one moment, or raise Killed there and at every one that follows."""
        if self.found is None:
            if kind != self.kind or self.left is None:
                return
            if self.left > 0:
                self.left -= 1
                return
            self.last = what
            self.blow()
        raise Killed

    def blow(self) -> None:
        """Kill the process; ``found`` is what its disk may hold then, first after a mere kill,
        then after power failures."""
        if self.found is None:
            self.found = [self.disk.image(), *islice(self.disk.images(), IMAGES)]
        raise Killed


@dataclass(frozen=True)
class MachineStore(LocalStore):
    """A state log as one process sees it: what another one has in its cache is not found here."""

    process: object = field(default_factory=object)


@dataclass(frozen=True)
class FuseInstrumentation(steps.Instrumentation):
    """Burns the fuse before and after each step."""

    fuse: Fuse | None = None

    def recorder(self) -> Recorder | None:
        return None if self.fuse is None else _FuseRecorder(self.fuse)


@dataclass
class _FuseRecorder:
    fuse: Fuse

    def notify(self, event: TraceEvent) -> None:
        self.fuse.burn("step", f"{event.phase} {event.step}")


@dataclass(eq=False)
class MemorySource:
    """A stream that is a list; it kills a process that waits for more than there is."""

    name: str
    messages: list[bytes] = field(default_factory=list)
    ended: bool = False
    fuse: Fuse | None = None

    def extent(self, upto: int, wait: float) -> Extent:
        if self.fuse is not None and len(self.messages) < upto and not self.ended:
            self.fuse.blow()
        return Extent(len(self.messages), self.ended)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        with step(step_id, causes=causes, carries=[planned]):
            return self.messages[planned.start : planned.stop]

    def plan(self, planned: MessageRange, step_id: str) -> None:
        with step(step_id, carries=[planned]):
            pass

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        with step(step_id, causes=causes):
            pass


@dataclass(eq=False)
class MemorySink:
    """A two-phase sink that lives on when the engine dies.

    Attributes:
        committed: the rows of each batch.
        ends: how far each batch read the streams that it read.
    """

    epoch: int = 0
    staged: dict[tuple[int, int, int], list[Row]] = field(default_factory=dict)
    committed: dict[int, list[Row]] = field(default_factory=dict)
    ends: dict[int, dict[str, int]] = field(default_factory=dict)

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        with step(noted.step, causes=noted.causes):
            self._check(epoch)
            self.epoch = epoch
            self.staged.clear()

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._check(epoch)
            self.staged[batch, partition, attempt] = list(rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._check(epoch)
            if batch not in self.committed:
                chosen = [self.staged[batch, p, a] for p, a in sorted(winners.items())]
                self.committed[batch] = [row for rows in chosen for row in rows]
                self.ends[batch] = {r.stream: r.stop for r in noted.carries}

    def _check(self, epoch: int) -> None:
        if epoch < self.epoch:
            raise FencedError(f"epoch {epoch} is older than {self.epoch}")


@dataclass(frozen=True)
class MachineConfig(RunConfig):
    """A run whose state log is on the disk of a fuse."""

    machine_store: LocalStore = field(default_factory=lambda: LocalStore(Path("/unused")))

    @property
    def store(self) -> LocalStore:
        return self.machine_store

    def settings(self, app: Application) -> Settings:
        return replace(super().settings(app), housekeeping=InlineExecutor(), fan_in=2)
