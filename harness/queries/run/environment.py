"""What runs of sinks need and share: warm drivers, the conductor, a folder."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from bettong.harness.conductor.server import Conductor
from bettong.harness.events import Handler, Preparing
from bettong.harness.processes.folders import temporary_folder
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.host import HostPool
from bettong.harness.queries.run.incarnations import INCARNATION_S
from bettong.harness.spark.driver import START_S, DriverError
from bettong.harness.spark.pool import DriverPool
from bettong.harness.spark.session import SessionConfig, merged
from bettong.lineage.search.executor import BudgetSpentError

_MASTER = "local[{cores},4]"
"""With one core one task at a time, so that runs are the same; a failed task is tried again, as on
a cluster."""

_SETTINGS = {
    # Spark (4.1 to 4.3) leaves a temporary file when it dies while it writes offsets/0, and then
    # refuses to start again because of that file. It is no fault of the sink.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.python.daemon.module": "bettong.harness.queries.run.worker_daemon",
}


def python_path() -> str:
    """``PYTHONPATH`` with which every Python process has the probe of sinks."""
    path = [str(Path(__file__).with_name("site")), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(part for part in path if part)


class SparkEnvironment:
    """Where runs take place, one at a time."""

    def __init__(
        self,
        pool: HostPool[Any],
        conductor: Conductor,
        folder: Path,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.pool = pool
        self.conductor = conductor
        self.folder = folder
        self._numbers = numbers or itertools.count(1)

    def ask(self, call: str, arguments: Mapping[str, Any], deadline: Deadline) -> Any:
        """Have a warm driver do something that is no run; it may take as long as an incarnation.

        Raises DriverError when it fails or does not return, BudgetSpentError when the time is up.
        """
        host = None
        try:
            host = self.pool.acquire(START_S, deadline.left)
            found = host.run(call, arguments, timeout=min(INCARNATION_S, deadline.left))
        except (DriverError, TimeoutError) as e:
            if host is not None:
                self.pool.kill(host)
            if deadline.passed:
                raise BudgetSpentError(f"the time is up: {call} was under way") from e
            if isinstance(e, TimeoutError):
                raise DriverError("it does not return") from e
            raise
        self.pool.release(host)
        return found

    def next_run(self) -> str:
        """A new run's id, which no other run has whose environment was made with this one."""
        return f"run{next(self._numbers):04d}"


class SparkEnvironments(Protocol):
    """The environment for sinks with these Spark settings; runs that go on at the same time have
    one each, told by ``beside``."""

    def __call__(
        self, settings: Mapping[str, str], cores: int = 1, beside: int = 0
    ) -> SparkEnvironment: ...


@contextlib.contextmanager
def spark_environments(on_event: Handler) -> Iterator[SparkEnvironments]:
    """Warm drivers for any number of checks; those with the same settings share them."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("bettong-sinks-"))
        conductors: dict[int, Conductor] = {}
        numbers, making = itertools.count(1), threading.Lock()
        known: dict[tuple[int, int, tuple[tuple[str, str], ...]], SparkEnvironment] = {}

        def environments(
            settings: Mapping[str, str], cores: int = 1, beside: int = 0
        ) -> SparkEnvironment:
            key = (beside, cores, tuple(sorted(settings.items())))
            with making:
                if beside not in conductors:
                    conductors[beside] = stack.enter_context(Conductor())
                if key not in known:
                    on_event(Preparing("Spark"))
                    master = _MASTER.format(cores=cores)
                    config = SessionConfig(master, merged(_SETTINGS, settings))
                    home = folder / str(len(known))
                    home.mkdir()
                    # Spark gives Python the local time, and an hour of it may come twice.
                    own = {"PYTHONPATH": python_path(), "TZ": "UTC"}
                    pool = stack.enter_context(DriverPool(1 if cores == 1 else 0, config, own))
                    known[key] = SparkEnvironment(pool, conductors[beside], home, numbers)
                return known[key]

        yield environments
