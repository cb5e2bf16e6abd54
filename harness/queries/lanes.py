"""Runs of one query side by side: each lane has drivers, links and servers of its own.

Most of a run is waiting, so two at a time cost little more than one. They must share nothing that
a query writes to or a fault hits: only where every endpoint is a server of ours, or there is
none, is there a second lane; and none where a query is seen to write, or to act, outside of its
own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bettong.harness.events import Handler, Warned
from bettong.harness.queries.apart import REPLAYED, Rows, apart
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.clients import Clients
from bettong.harness.queries.run.endpoints import EndpointProxies, start_servers
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.harness.queries.search.confirmation import DisturbedError
from bettong.harness.queries.search.search import forget
from bettong.harness.servers.server import Server
from bettong.lineage.results import Result

MOST = 2


@dataclass(frozen=True, slots=True)
class Links:
    """The ways of one lane to its servers.

    Attributes:
        endpoints: the servers' own addresses.
        servers: those that are ours.
        proxies: what is before them.
        clients: what runs have shown of those that ask them, the same on all lanes.
    """

    endpoints: Mapping[str, str]
    servers: Mapping[str, Server]
    proxies: EndpointProxies
    clients: Clients


class Lanes:
    """The lanes of one check; what they start ends with the stack.

    Args:
        wanted: servers, started for each lane.
        given: addresses of endpoints, which every lane would go to.
        runner: makes a lane's runner, given its number and its links.

    Attributes:
        first: the runner that is there from the beginning.
        links: its links.
        replayed: its run under :data:`~.apart.REPLAYED`, alone, with replays dealt out in another
            way, once there was one; none where there is one lane.

    Raises ServerMissingError.
    """

    def __init__(
        self,
        request: Request,
        wanted: Mapping[str, Callable[[], Server]],
        given: Mapping[str, str],
        runner: Callable[[int, Links], QueryRunner],
        stack: contextlib.ExitStack,
        on_event: Handler,
    ) -> None:
        clients = Clients()

        def links() -> Links:
            endpoints, servers = start_servers(wanted, given, stack, on_event)
            proxies = stack.enter_context(EndpointProxies(endpoints, servers))
            return Links(endpoints, servers, proxies, clients)

        self._on_event = on_event
        self.links = links()
        self.first = runner(0, self.links)
        self._second: Callable[[], QueryRunner] = lambda: runner(1, links())
        self._other: QueryRunner | None = None
        self.replayed: QueryRun | None = None
        asked = request.side_by_side and not request.only and not request.clean_only
        self._apart = asked and not given and (os.cpu_count() or 1) >= MOST

    def beside(
        self,
        clean: QueryRun,
        replayed: QueryRun | None,
        fingerprint: Callable[[QueryRun], str],
        same: Callable[[Rows, Rows], bool],
        left: Rows = (),
    ) -> list[QueryRunner] | None:
        """The runners beside the first one, once they are known to leave it alone. To start them
        takes all that the machine has, so that it is begun when this is asked first: None until
        they are there. What is given is that of :func:`~.apart.apart`, with None for a run that is
        still to be made. Raises DisturbedError."""
        self._begin()
        if self._other is None:
            return []
        if not self._other.ready:
            return None
        self.replayed = replayed or self.replayed
        return self.apart(clean, fingerprint, same, left)

    def _begin(self) -> None:
        """Begin to start what the second lane needs, if there may be one."""
        if self._apart:
            self._other = self._other or self._second()

    def apart(
        self,
        clean: QueryRun,
        fingerprint: Callable[[QueryRun], str],
        same: Callable[[Rows, Rows], bool],
        left: Rows = (),
    ) -> list[QueryRunner]:
        """The same, and the second lane is waited for. Raises DisturbedError."""
        self._begin()
        other = self._other
        if other is None:
            return []
        alone = self.replayed = self.replayed or self.first.run([REPLAYED], replay_layout=1)
        if not apart(
            self.first, other, clean, alone, fingerprint=fingerprint, same=same, left=left
        ):
            reason = "two runs that were interleaved did not leave each other alone"
            raise DisturbedError(reason, in_sight=False)
        other.start_ahead()
        return [other]

    def close(self, why: str) -> None:
        """There is one lane from now on."""
        if self._apart:
            self._apart = False
            self._other = self.replayed = None
            self._on_event(Warned(f"runs are made one at a time: {why}"))


def undisturbed(request: Request, lanes: Lanes, judge: Callable[[Request, bool], Result]) -> Result:
    """What ``judge`` says, given the request and whether what the query keeps is seen. Where runs
    disturb each other, or a driver that was spared its successor, it is asked once more, with one
    lane and without what was found before. The note of that stays where the question is another
    one now: a search that goes on comes to the same by it."""
    in_sight = True
    while True:
        try:
            return judge(request, in_sight)
        except DisturbedError as e:
            if e.in_sight and not e.killed:
                forget(request)
            lanes.close(str(e))
            request = replace(request, real=request.real or e.killed)
            in_sight = in_sight and e.in_sight
