"""What a run needs of the process that is its driver, and of those that hand such out: a warm host,
or a user's own script."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.session import Ended
from bettong.harness.spark.driver import Stack


class QueryHost(Protocol):
    """A process in which a query runs, as :class:`~bettong.harness.spark.driver.DriverHost`."""

    @property
    def pid(self) -> int:
        """The session that all its processes are of."""

    def submit(
        self,
        call: str,
        args: Mapping[str, Any],
        instrumentation: Instrumentation | None = None,
    ) -> Future[Any]: ...

    def run(self, call: str, args: Mapping[str, Any], *, timeout: float | None = None) -> Any: ...

    def stop_queries(self, timeout: float) -> None: ...

    def until_quiet(self, timeout: float) -> None: ...

    def lose_executor(self) -> None: ...

    def where(self, timeout: float) -> list[Stack]: ...

    def reset(self) -> None: ...

    def kill(self) -> Ended: ...

    def pause(self) -> str: ...

    def resume(self) -> None: ...


Host = TypeVar("Host", bound=QueryHost)


class HostPool(Protocol[Host]):
    """Hands hosts out, as :class:`~bettong.harness.spark.pool.DriverPool`."""

    @property
    def ready(self) -> bool: ...

    def acquire(self, timeout: float = ..., most: float = ...) -> Host: ...

    def start_ahead(self, hosts: int) -> None: ...

    def start_no_more(self) -> None: ...

    def release(self, host: Host, /) -> None: ...

    def kill(self, host: Host, /) -> None: ...
