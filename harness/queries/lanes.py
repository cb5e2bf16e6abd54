"""Runs of one sink side by side: each lane has drivers, links and servers of its own.

Most of a run is waiting, so two at a time cost little more than one. They must share nothing that
a sink writes to or a fault hits: only where every endpoint is a server of ours, or there is
none, is there a second lane; and none where a sink is seen to write, or to act, outside of its own.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bettong.harness.events import Handler, Warned
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.endpoints import EndpointProxies, start_servers
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.runner import SinkRunner
from bettong.harness.queries.sink.contract import Sink
from bettong.harness.queries.sink.rows import Input

MOST = 2


class Lanes:
    """The lanes of one check; what they start ends with the stack.

    Attributes:
        first: the runner that is there at once.
        endpoint_proxies: the first one's links.
        source: the rows.
        deadline: when the budget's time is up.
    """

    def __init__(
        self,
        request: Request,
        sink: Sink,
        environments: SparkEnvironments,
        on_event: Handler,
        stack: contextlib.ExitStack,
    ) -> None:
        self._request = request
        self._sink = sink
        self.source = Input()
        self._environments = environments
        self._on_event = on_event
        self._stack = stack
        self.deadline = Deadline.after(request.budget.seconds)
        self.endpoint_proxies = self._links()
        self.first = self._runner(0, self.endpoint_proxies)
        self._further: Future[SinkRunner] | None = None
        if request.side_by_side and self._apart() and not request.only:
            starter = stack.enter_context(ThreadPoolExecutor(1))
            self._further = starter.submit(self._another)

    def beside(self) -> list[SinkRunner]:
        """The runners beside the first one; waits until they are there."""
        return [] if self._further is None else [self._further.result()]

    def close(self, why: str) -> None:
        """There is one lane from now on."""
        if self._further is not None:
            self._further = None
            self._on_event(Warned(f"runs are made one at a time: {why}"))

    def _apart(self) -> bool:
        """Whether runs of the sink share nothing when each has servers of its own."""
        shared = {*self._sink.endpoints, *self._request.endpoints}
        return not shared and (os.cpu_count() or 1) >= MOST

    def _another(self) -> SinkRunner:
        return self._runner(1, self._links())

    def _links(self) -> EndpointProxies:
        given = {**self._sink.endpoints, **self._request.endpoints}
        endpoints, servers = start_servers(self._sink.servers, given, self._stack, self._on_event)
        return self._stack.enter_context(EndpointProxies(endpoints, servers))

    def _runner(self, lane: int, links: EndpointProxies) -> SinkRunner:
        config = self._sink.spark_config
        target = Target(self._request.target, dict(self._request.options), (str(Path.cwd()),))
        return SinkRunner(
            self._environments(config, beside=lane),
            target,
            self.source,
            links,
            partial(self._environments, config, 2, lane),
            self._on_event,
            self.deadline,
        )
