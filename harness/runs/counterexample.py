"""Counterexample files: one fault schedule with all that is needed to run it again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bettong.harness.backends.choice import BackendChoice
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_json
from bettong.lineage.nearest import one_of
from bettong.lineage.results import GUARANTEES, Guarantee
from bettong.lineage.seals import check, write_sealed

KIND = "bettong-counterexample"
_PARTS = ("kind", "version", "scenario", "options", "schedule")
_WHERE = ("workers", "runner", "backend", "master")
_ENDING = ("replay", "again", "power_cut")
_OPTIONS = (*_WHERE, *_ENDING, "input", "expect", "code")


@dataclass(frozen=True, slots=True)
class CounterexampleFile:
    """What a counterexample file says.

    Attributes:
        scenario: name of the scenario.
        schedule: the faults.
        options: how the run was set up, as ``bettong run`` names it.
    """

    scenario: str
    schedule: Schedule
    options: dict[str, Any]

    @property
    def workers(self) -> int:
        """How many Spark workers there were."""
        return int(self.options.get("workers", 0))

    @property
    def where(self) -> BackendChoice:
        """On which backend it was found."""
        return BackendChoice.reported(self.options)

    @property
    def expected(self) -> Guarantee:
        """The level that was asked for."""
        level: Guarantee = self.options.get("expect", "effectively-once")
        return level

    def write(self, path: Path) -> None:
        """Write the file."""
        value = {
            "kind": KIND,
            "version": 1,
            "scenario": self.scenario,
            "options": self.options,
            "schedule": self.schedule.to_dict(),
        }
        write_sealed(path, json.dumps(value, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> CounterexampleFile:
        """What a file says; raises UsageError, naming the file."""
        value = read_json(path, "the counterexample")
        if not isinstance(value, dict) or value.get("kind") != KIND:
            raise UsageError(f"{path} is not a counterexample of Bettong")
        if value.get("version") != 1:
            raise UsageError(f"{path} is of version {value.get('version')!r}; this Bettong reads 1")
        scenario, options = value.get("scenario"), value.get("options")
        if not isinstance(scenario, str) or not isinstance(options, dict):
            raise UsageError(f"{path}: scenario and options are missing or of the wrong kind")
        if options.get("workers", 0) not in (0, 1, 2):
            raise UsageError(f"{path}: workers is 0, 1 or 2")
        try:
            for name in value:
                one_of(name, _PARTS, "the part")
            for name in options:
                one_of(name, _OPTIONS, "the option")
            one_of(str(options.get("expect", "none")), GUARANTEES, "the level")
            found = cls(scenario, Schedule.from_dict(value.get("schedule")), options)
            found.where.backend(found.workers)
        except UsageError as e:
            raise UsageError(f"{path}: {e}") from e
        check(path)
        return found
