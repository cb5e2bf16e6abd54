"""The driver hosts of one run, and the jobs that they do: one for each incarnation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.faults.point import DRIVER
from bettong.harness.queries.raised import JVM_GONE, cause, jvm_is_gone
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.driver_control import DriverControl
from bettong.harness.queries.run.host import HostPool, QueryHost
from bettong.harness.spark.driver import (
    START_S,
    DriverDiedError,
    DriverError,
    JobError,
    Stack,
)
from bettong.lineage.errors import BettongError

INCARNATION_S = 120.0
_STOP_S = 10.0


class SinkError(BettongError):
    """The sink itself cannot be judged: which part of it failed, and how."""


class Incarnations:
    """Starts the query, sees it off, starts it again.

    Args:
        driver: the node, as the run's faults know it.
        pools: of the first incarnation's host, and of the later ones'.
        aside: the pool of hosts for what is no incarnation.
        asked: the conductor's address, and the function that does an incarnation.
        starts: called before each start with the number that the incarnation will have.
        deadline: until when a host may take to be there.
    """

    def __init__(
        self,
        driver: DriverControl,
        pools: tuple[HostPool[Any], HostPool[Any]],
        aside: HostPool[Any],
        run: str,
        asked: tuple[str, str],
        starts: Callable[[], None],
        deadline: Deadline,
    ) -> None:
        self._driver = driver
        self._pools = pools
        self._aside = aside
        self._run = run
        self._conductor, self._call = asked
        self._starts = starts
        self._deadline = deadline
        self._jobs: dict[int, Future[Any]] = {}
        self._hosts: dict[QueryHost, HostPool[Any]] = {}

    def start(self, arguments: Callable[[int], Mapping[str, Any]]) -> int:
        """The next incarnation, with the arguments for its number."""
        driver = self._driver
        host, pool = driver.host, self._pools[driver.incarnation > 0]
        if host is None or host in driver.paused or self._hosts[host] is not pool:
            host = self._acquire(pool)
        elif driver.incarnation > 0:
            host = self._as_new(host, pool)
        self._starts()
        number = driver.takes_over(host)
        instrumentation = Instrumentation(self._run, DRIVER, number, self._conductor)
        job = host.submit(self._call, arguments(number), instrumentation)
        self._jobs[number] = job
        job.add_done_callback(lambda _: driver.signals.put("ended", number))
        return number

    def outcome(self, number: int) -> dict[str, Any] | None:
        """What the incarnation of the driver in charge reports, which has ended other than by a
        fault; None when the time is up. A process that has ended by itself is an error.

        Raises SinkError when the sink's own parts failed, other than its query.
        """
        try:
            done: dict[str, Any] = self._jobs[number].result(0)
        except DriverDiedError:
            if self._deadline.passed:
                return None
            assert self._driver.host is not None
            return {"error": self._death(self._driver.host)}
        except JobError as e:
            if not jvm_is_gone(e.remote_traceback):
                raise SinkError(cause(str(e))) from e
            assert self._driver.host is not None
            self._lose(self._driver.host)
            return {"error": JVM_GONE}
        return done

    def mark_dead(self, killed: bool) -> None:
        """See the crashed incarnation off, and bring back the state that it left."""
        if killed:
            assert self._driver.host is not None
            self._lose(self._driver.host)
            return
        self.stop()
        self._driver.bring_back()

    def stop(self) -> None:
        """End the query of the driver in charge, its tasks with it: none of them may act on what
        is brought back; the driver too, if they do not end."""
        host = self._driver.host
        assert host is not None
        try:
            host.stop_queries(_STOP_S)
            self._jobs[self._driver.incarnation].exception(_STOP_S)
            host.until_quiet(_STOP_S)
        except (TimeoutError, DriverError):
            self._lose(host)

    def where(self) -> list[Stack]:
        """Where the threads of the driver in charge stand; none if it does not say."""
        host = self._driver.host
        assert host is not None
        try:
            return host.where(_STOP_S)
        except (TimeoutError, DriverError):
            return []

    def unended(self) -> Iterator[int]:
        """Wait for zombies, until their queries end or have nothing left to do; those that do not
        end."""
        for number, job in self._jobs.items():
            try:
                job.exception(INCARNATION_S)
            except TimeoutError:
                yield number

    def ask(self, arguments: Mapping[str, Any]) -> Any:
        """A job that is no incarnation, in a process in which no query has run; once more, if it
        fails, in a new one, with every driver of the run dead.

        Raises JobError, TimeoutError, DriverError.
        """
        try:
            return self._asked(arguments)
        except (DriverDiedError, JobError, TimeoutError):
            self._kill_all()
            if self._deadline.passed:
                raise
            return self._asked(arguments)

    def _asked(self, arguments: Mapping[str, Any]) -> Any:
        host = self._acquire(self._aside)
        try:
            patience = min(INCARNATION_S, self._deadline.left)
            found = host.run(self._call, arguments, timeout=patience)
        except DriverDiedError as e:
            raise DriverDiedError(self._death(host)) from e
        except BaseException:
            self._lose(host)
            raise
        del self._hosts[host]
        self._aside.release(host)
        return found

    def _as_new(self, host: QueryHost, pool: HostPool[Any]) -> QueryHost:
        """A host that was spared where its driver died: its session must know nothing of what
        the dead one kept in it, as views and settings."""
        try:
            host.reset()
        except (DriverError, TimeoutError):
            self._lose(host)
            return self._acquire(pool)
        return host

    def _kill_all(self) -> None:
        for host in list(self._hosts):
            self._lose(host)

    def expire(self) -> None:
        """The time is up: whatever is waited for ends."""
        for host in list(self._hosts):
            host.kill()

    def release(self, spoilt: bool) -> None:
        """Give the hosts back; spoilt ones are of no use to anybody else."""
        for host, pool in self._hosts.items():
            (pool.kill if spoilt else pool.release)(host)

    def _death(self, host: QueryHost) -> str:
        """How a host has ended that no fault has killed; what is left of it goes."""
        ended = host.kill()
        self._lose(host)
        return (
            f"its process ended by itself, with status {ended.status}: os._exit and sys.exit do "
            "that, and crashes of extensions"
        )

    def _lose(self, host: QueryHost) -> None:
        self._hosts.pop(host).kill(host)
        if self._driver.host is host:
            self._driver.host = None

    def _acquire(self, pool: HostPool[Any]) -> QueryHost:
        host: QueryHost = pool.acquire(START_S, self._deadline.left)
        self._hosts[host] = pool
        return host
