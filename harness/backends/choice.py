"""Which backend runs go on, as the options of ``bettong run`` and counterexample files say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bettong.harness.backends.base import Backend, Runner
from bettong.harness.backends.docker import DockerBackend
from bettong.harness.backends.local import LocalBackend
from bettong.lineage.errors import UsageError

Kind = Literal["local", "docker"]
MOST_WORKERS = 2
_SPARK_BYTES = 2 << 30
"""Of memory, for the driver of a run, its successor that is started ahead, and the servers."""


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A choice of backend.

    Attributes:
        kind: processes of this machine, or containers.
        runner: with Spark or without.
        master: a Spark master of the user's.
    """

    kind: Kind = "local"
    runner: Runner = "spark"
    master: str | None = None

    @classmethod
    def reported(cls, options: Mapping[str, Any]) -> BackendChoice:
        """What a counterexample's file says; raises UsageError."""
        kind, runner = options.get("backend", "local"), options.get("runner", "spark")
        if kind not in get_args(Kind) or runner not in get_args(Runner):
            raise UsageError(f"backend {kind!r} with runner {runner!r}: there is no such thing")
        master = options.get("master")
        return cls(kind, runner, None if master is None else str(master))

    def at_once(self, cores: int, available: int) -> int:
        """How many runs may go on side by side, each on a backend of its own: they wait more than
        they work, so there are three a core without Spark, and two with it where there is memory.
        With Spark in containers, or on the user's master, there are two.

        Args:
            available: bytes of memory that nobody uses.
        """
        if cores == 1:
            return 1
        if self.runner == "in-process":
            return 3 * cores
        if self.kind == "docker" or self.master is not None:
            return 2
        return max(2, min(2 * cores, available // _SPARK_BYTES))

    def backend(self, workers: int = 0, kafka: bool = False) -> Backend:
        """The backend, not entered; raises UsageError for what cannot be had together.

        Args:
            kafka: for a scenario that needs a broker.
        """
        if not 0 <= workers <= MOST_WORKERS:
            raise UsageError(f"--workers {workers}: there can be 0 to {MOST_WORKERS}")
        if self.kind == "docker":
            if self.master is not None:
                raise UsageError("--master goes with --backend local: leave --backend out")
            if kafka:
                raise UsageError("Kafka goes with --backend local: leave --backend out")
            return DockerBackend(workers=workers, runner=self.runner)
        return LocalBackend(workers=workers, runner=self.runner, master=self.master, kafka=kafka)
