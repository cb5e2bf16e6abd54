"""``--faults``: which schedules are run after the clean run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bettong.harness.faults.point import Topology
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.record import RunRecord
from bettong.harness.search.enumeration import each_step, random_schedules
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import STORAGE
from bettong.lineage.nearest import one_of

EACH_STEP_BATCHES = 2
_SUFFIXES = (".yaml", ".yml", ".json")
_DRAWS = 4  # random schedules drawn for each one wanted, as some cannot be injected


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """What ``--faults`` asks for.

    Attributes:
        given: the schedules of ``schedules``, which come from files.
        count: of random schedules.
        share: (I, N) when only the I-th of N parts of the schedules is run here.
    """

    kind: Literal["none", "each-step", "random", "schedules"]
    given: tuple[Schedule, ...] = ()
    count: int = 0
    seed: int = 0
    share: tuple[int, int] = (1, 1)

    @classmethod
    def of(cls, *schedules: Schedule) -> FaultPlan:
        """The plan to run these schedules, one after the other."""
        return cls("schedules", schedules)

    @property
    def clean_runs(self) -> int:
        """Runs without faults that come first; two show whether the scenario is deterministic."""
        return 2 if self.kind in ("each-step", "random") else 1

    @property
    def wanted(self) -> int | None:
        """How many schedules have to be injected; None: all of them."""
        index, of = self.share
        return len(range(index - 1, self.count, of)) if self.kind == "random" else None

    @property
    def splits(self) -> bool:
        """Whether several machines can share it."""
        return self.kind in ("each-step", "random") or len(self.given) > 1

    def schedules(self, clean: RunRecord, topology: Topology) -> Sequence[Schedule]:
        """The schedules, drawn up from the clean run."""
        index, of = self.share
        return self._all(clean, topology)[index - 1 :: of]

    def _all(self, clean: RunRecord, topology: Topology) -> Sequence[Schedule]:
        match self.kind:
            case "none":
                return []
            case "schedules":
                return self.given
            case "each-step":
                return each_step(clean.events, EACH_STEP_BATCHES, topology)
            case "random":
                return random_schedules(clean.events, self.count * _DRAWS, self.seed, topology)

    @property
    def hits(self) -> bool:
        """Whether there are faults: what one has left on the disks may be seen only when all is
        started again after the last batch."""
        return self.kind in ("each-step", "random") or any(given.faults for given in self.given)

    @property
    def hits_disks(self) -> bool:
        """Whether one has a fault of a disk: what that has done may be seen only when the power is
        cut then."""
        return any(fault.bound == STORAGE for given in self.given for fault in given.faults)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a verdict takes for granted."""
        match self.kind:
            case "each-step":
                return (f"single faults only, in the first {EACH_STEP_BATCHES} batches",)
            case "random":
                return (f"{self.count} random schedules of one or two faults, seed {self.seed}",)
            case "schedules":
                return (f"the given fault schedules, {len(self.given)} of them",)
            case _:
                return ("no fault at all",)


def parse_plan(text: str, seed: int, topology: Topology) -> FaultPlan:
    """What ``none``, ``each-step``, ``random:N``, or the name of a schedule's file or of a folder
    of them asks for; raises UsageError."""
    if text in ("none", "each-step"):
        return FaultPlan(text, seed=seed)  # type: ignore[arg-type]
    kind, colon, number = text.partition(":")
    if kind == "random":
        if not number.isdecimal() or not 0 < int(number) <= 100_000:
            raise UsageError(f"--faults {text}: write random:N with N from 1 to 100000")
        return FaultPlan("random", count=int(number), seed=seed)
    path = Path(text)
    if not path.exists() and path.suffix not in _SUFFIXES and not colon:
        one_of(text, ("none", "each-step", "random:N", "ldfi"), "--faults")
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in _SUFFIXES)
        if not files:
            raise UsageError(f"--faults {text}: there is no {' or '.join(_SUFFIXES)} file in it")
    schedules = [Schedule.read(file) for file in files]
    for schedule in schedules:
        schedule.check(topology)
    return FaultPlan.of(*schedules)
