"""Why a run of a job went well: what could have hit it, beside what can hit a sink."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.crash_points import CrashPoint
from bettong.harness.queries.faults.failed_step import FailedStep
from bettong.harness.queries.faults.operations import MORE, REPEATED, STOPPED
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wire import WirePoint
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.lineage import Why

_SOURCE_LOG = re.compile(r"source=\d+/log=(\d+)$")
_STATE_FILE = re.compile(r"batch=\d+/state/op=\d+/p=(\d+)/")
_ONCE = re.compile(r"metadata$|state\.metadata/")
_LOGS = ("offsets", "commits", "_spark_metadata")


class JobWhy(Why):
    """Reads lineage out of runs of a job: its batches go through its source's log, its tasks, its
    state files and Spark's logs, and each of these can fail beside what can hit a sink."""

    repeats = False
    """Whether rows that are sent twice must count once: the job deduplicates."""
    fed = True
    """Whether it is fed step by step: a source of its own gives all its rows at once."""
    own_session = False
    """Whether it is not Bettong that has its Spark session."""

    def read_clean(self, run: QueryRun, wire: list[WirePoint]) -> None:
        """Take in the clean run; to a session of somebody else less can be done."""
        super().read_clean(run, wire)
        self.in_tasks = self.in_tasks and not self.own_session

    def _batch_of(self, crash_point: CrashPoint) -> int | None:
        """A source's log entry belongs to the batch of its number, what a query writes once to
        the first one."""
        step = crash_point.point.step
        if found := _SOURCE_LOG.match(step):
            return int(found[1])
        return 0 if _ONCE.match(step) else crash_point.batch

    def _faults_at(self, crash_point: CrashPoint) -> Iterator[QueryFault]:
        """A file of the checkpoint cannot be written, beside what can hit a sink."""
        yield from super()._faults_at(crash_point)
        if is_checkpoint_file(crash_point.point) and crash_point.point.phase == "before":
            yield FailedStep(crash_point.point)

    def _loses(self, crash_point: CrashPoint) -> bool:
        """Not where a task reads a shuffle: what it reads is lost with the executor, and the whole
        stage is tried again."""
        first = "/stage=" not in crash_point.point.step or "/stage=0/" in crash_point.point.step
        return first and not self.own_session and super()._loses(crash_point)

    def _events(self) -> Iterator[QueryFault]:
        if self.fed:
            yield STOPPED
            yield MORE
        if self.repeats:
            yield REPEATED


def is_checkpoint_file(point: Point) -> bool:
    """Whether a point is at a file that Spark writes to its checkpoint, or to a file sink's log."""
    step = point.step
    whole = _SOURCE_LOG.match(step) or _STATE_FILE.match(step) or _ONCE.match(step)
    return bool(whole) or step.rpartition("/")[2] in _LOGS
