"""Runs of one query, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from bettong.harness.events import Handler, ignore
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.run.clients import Clients
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironment
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.one_run import OneRun
from bettong.harness.queries.run.workload import SinkWorkload, Workload
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.trace import TraceEvent

_TAKING_OVER = 3
"""The zombie, or the one that dies, the one in its place, and one to read in."""


class QueryRunner:
    """Runs one query, again and again.

    ``two_cores`` gives the environment of runs in which two tasks are to be there at once,
    ``clients`` what runs of the same query elsewhere have shown of its clients.

    Attributes:
        workload: the query with its input.
    """

    def __init__(
        self,
        spark_environment: SparkEnvironment,
        workload: Workload,
        endpoint_proxies: EndpointProxies,
        two_cores: Callable[[], SparkEnvironment] | None = None,
        on_event: Handler = ignore,
        deadline: Deadline = Deadline(),  # noqa: B008 - immutable
        clients: Clients | None = None,
    ) -> None:
        self._environment = spark_environment
        self.workload = workload
        self._proxies = endpoint_proxies
        self._on_event = on_event
        self._deadline = deadline
        self._two_cores = two_cores or (lambda: spark_environment)
        self._clients = clients or Clients()

    def run(
        self,
        faults: Sequence[QueryFault] = (),
        *,
        replay_layout: int = 0,
        real: bool = False,
        hold: Callable[[TraceEvent], object] = lambda event: None,
    ) -> QueryRun:
        """One run.

        Args:
            faults: injected together.
            replay_layout: layout of the rows from the second incarnation on.
            real: crashes are SIGKILL.
            hold: called at each event while its process waits, before a fault fires there.

        Raises SinkError when the sink cannot even set up or read back, BudgetSpentError when the
        time is up.
        """
        return self._one(faults, replay_layout, real, hold).run()

    def start_ahead(self) -> None:
        """Start the drivers that a run needs in which one takes over, or is killed."""
        self._environment.pool.start_ahead(_TAKING_OVER)

    def start_no_more(self) -> None:
        """Start no driver for one that dies from now on: the last runs are made."""
        self._environment.pool.start_no_more()

    def start_no_more_on_two_cores(self) -> None:
        """The same of drivers with two cores."""
        self._two_cores().pool.start_no_more()

    @property
    def ready(self) -> bool:
        """Whether a driver is there, so that a run need not wait until one is started."""
        return self._environment.pool.ready

    def of(self, workload: Workload) -> QueryRunner:
        """A runner of another workload in the same place."""
        other = copy(self)
        other.workload = workload
        return other

    def look_elsewhere(self, elsewhere: bool) -> None:
        """Whether, from the next run on, what the query's code changes outside of its workdir is
        a step as well."""
        self.workload.target = replace(self.workload.target, elsewhere=elsewhere)

    def left_by_setup(self) -> list[dict[str, Any]]:
        """The rows that a reader sees when ``setup`` has made an empty target; no query is run.
        Raises as :meth:`run` does."""
        return self._one((), 0, False, lambda event: None).left_by_setup()

    def left_elsewhere(self) -> list[dict[str, Any]]:
        """The rows that a reader sees where there is nothing: what the run before has left outside
        of its folder. Raises as :meth:`run` does."""
        return self._one((), 0, False, lambda event: None).left_elsewhere()

    def _one(
        self,
        faults: Sequence[QueryFault],
        replay_layout: int,
        real: bool,
        hold: Callable[[TraceEvent], object],
    ) -> OneRun:
        first, later = self._environment.pool, self._environment.pool
        if any(fault.loses_executor for fault in faults):
            first = later = self._two_cores().pool
        elif any(fault.cores for fault in faults):
            later = self._two_cores().pool
        if any(fault.takes_over for fault in faults):
            first.start_ahead(_TAKING_OVER)
        return OneRun(
            self._environment,
            (first, later),
            self.workload,
            self._proxies,
            faults,
            replay_layout,
            real,
            self._on_event,
            self._deadline,
            self._clients,
            hold,
        )


class SinkRunner(QueryRunner):
    """Runs one sink on the rows of a source."""

    def __init__(
        self,
        spark_environment: SparkEnvironment,
        target: Target,
        source: Input,
        endpoint_proxies: EndpointProxies,
        two_cores: Callable[[], SparkEnvironment] | None = None,
        on_event: Handler = ignore,
        deadline: Deadline = Deadline(),  # noqa: B008 - immutable
        clients: Clients | None = None,
    ) -> None:
        super().__init__(
            spark_environment,
            SinkWorkload(target, source),
            endpoint_proxies,
            two_cores,
            on_event,
            deadline,
            clients,
        )
