"""Half of a write is taken: the driver dies then, or the disk is full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Storage
from bettong.harness.faults.point import DRIVER, Point
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wording import point_in_words
from bettong.harness.queries.sink.file_steps import HALF, WRITE

HALF_WRITTEN = "half written"
"""The mechanism of both."""
_AMID = re.compile(r"crash\(driver, amid (.+)\)$")
_FULL = re.compile(r"storage\(ENOSPC, (.+)\)$")
_FILE = re.compile(rf"(sink\.file)=\d+\.{WRITE}$")


@dataclass(frozen=True, slots=True)
class _HalfWritten(QueryFault):
    """No second fault meets what either leaves.

    Attributes:
        at: right before the write.
    """

    at: Point

    @property
    def mechanism(self) -> str:
        return HALF_WRITTEN

    @property
    def _write(self) -> str:
        return point_in_words(self.at).removeprefix("right before ")


@dataclass(frozen=True, slots=True)
class CrashAmidWrite(_HalfWritten):
    """The driver dies when the system has taken half of a write, which is what is left of a large
    one, and of any whose power fails."""

    @property
    def id(self) -> str:
        return f"crash({DRIVER}, amid {self.at.place})"

    @property
    def placed(self) -> tuple[Fault, ...]:
        half = Point(_FILE.sub(rf"\1=1.{HALF}", self.at.step))
        return (Storage(self.at, "EINTR"), Crash(DRIVER, half))

    @classmethod
    def parse(cls, id: str) -> CrashAmidWrite | None:
        found = _AMID.match(id)
        return None if found is None else cls(Point.parse(f"before {found[1]}"))

    def describe(self) -> str:
        taken = f"The driver died amid {self._write}, half of it was taken"
        return f"{taken}; the query was started again."

    @property
    def bound(self) -> str:
        return "crash"

    @property
    def crashes(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FullDisk(_HalfWritten):
    """The disk is full: the next write fails."""

    @property
    def placed(self) -> tuple[Storage]:
        return (Storage(self.at, "ENOSPC"),)

    @classmethod
    def parse(cls, id: str) -> FullDisk | None:
        found = _FULL.match(id)
        return None if found is None else cls(Point.parse(found[1]))

    def describe(self) -> str:
        return f"The disk was full amid {self._write}: half of it was taken."

    @property
    def bound(self) -> str:
        return "loss"

    @property
    def swallowable(self) -> bool:
        return True


def half_written(write: Point) -> Iterator[QueryFault]:
    """What can become of a write of which half is taken."""
    yield FullDisk(write)
    yield CrashAmidWrite(write)
