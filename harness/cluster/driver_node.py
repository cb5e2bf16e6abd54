"""The driver of a run: a warm host of the pool, with one start of the query at a time."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.nodes import Node
from bettong.harness.processes.session import Ended
from bettong.harness.spark.driver import DriverDiedError, DriverError, DriverHost
from bettong.harness.spark.lasting_jvm import LastingJvmHost
from bettong.harness.spark.supply import DriverSupply


class DriverNode(Node):
    """The node ``driver``; each of its incarnations is one start of the query.

    Args:
        call, args: the job, as :meth:`DriverHost.submit` takes it.
        spares_jvm: a crash spares the JVM of a host that can outlive its driver.

    Attributes:
        spared: how many crashes and power cuts have spared the JVM.
    """

    def __init__(
        self,
        name: str,
        instrumentation: Instrumentation,
        log: Path,
        supply: DriverSupply,
        call: str,
        args: Mapping[str, Any],
        spares_jvm: bool = False,
    ) -> None:
        super().__init__(name, instrumentation, log)
        self.spared = 0
        self._supply = supply
        self._call = call
        self._args = args
        self._spares_jvm = spares_jvm
        self._host: DriverHost | None = None
        self._left: LastingJvmHost | None = None
        self._job: Future[Any] | None = None
        self._logged = 0

    def _start(self, instrumentation: Instrumentation) -> None:
        self.finish()
        self._host = self._revived() or self._supply.acquire()
        self._logged = self._host.log.stat().st_size
        self._job = self._host.submit(self._call, self._args, instrumentation)

    def _revived(self) -> DriverHost | None:
        """The host with the JVM that the last crash has spared, if it is of use."""
        host, self._left = self._left, None
        if host is None:
            return None
        try:
            host.revive()
        except DriverError as e:
            self._say(f"the JVM that a crash had spared is of no use: {e}")
            self._supply.mark_dead(host)
            return None
        return host

    def crash(self) -> tuple[int, Ended | None]:
        with self._lock:
            host = self._host
            if self._spares_jvm and isinstance(host, LastingJvmHost):
                ended = host.kill_driver()
                if ended is not None:
                    self._host, self._left = None, host
                    self._keep_log(host)
                    self.spared += 1
                    return self.incarnation, ended
            return super().crash()

    def _kill(self) -> Ended | None:
        self._drop_left()
        host, self._host = self._host, None
        if host is None:
            return None
        self._keep_log(host)
        ended = host.kill()
        self._supply.mark_dead(host)
        return ended

    def _drop_left(self) -> None:
        left, self._left = self._left, None
        if left is not None:
            self._supply.mark_dead(left)

    def _let_go(self) -> None:
        self._host = self._left = self._job = None
        self.spared = 0

    def finish(self) -> None:
        """Give the host back, if the query has ended."""
        with self._lock:
            host, self._host = self._host, None
            if host is None:
                return
            self._keep_log(host)
            if host.alive and self._job is not None and self._job.done():
                self._supply.release(host)
            else:
                self._supply.mark_dead(host)

    def _pause(self) -> str | None:
        return self._host.pause() if self._host is not None else None

    def resume(self) -> None:
        if self._host is not None:
            self._host.resume()

    def poll(self) -> int | None:
        """None while the query runs, 0 when it has done its work, 1 when it failed."""
        job = self._job
        if job is None or not job.done():
            return None
        error = job.exception()
        if error is not None and not isinstance(error, DriverDiedError):
            self._say(f"the query ended: {error}")
        return 0 if error is None else 1

    def value(self) -> Any:
        """What the job gave back when it had done its work."""
        assert self._job is not None
        return self._job.result()

    def _keep_log(self, host: DriverHost) -> None:
        with host.log.open("rb") as file:
            file.seek(self._logged)
            message = file.read()
        with self.log.open("ab") as log:
            log.write(message)

    def _say(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")
