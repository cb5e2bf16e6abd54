"""Fork servers that hash texts each in its own way, as any two processes of Python do.

What one of them forks has its hashes: those of a node that was started again would be the ones that
it had before, and whoever keeps ``hash()`` of a text, or the order of a set, would not be seen to
err.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bettong.engine.steps import ENV_INCARNATION
from bettong.harness.processes.forked import ForkServerProcess
from bettong.harness.processes.session import ProcessSession

_HASH_SEEDS = ("1", "2")
"""Not drawn, so that each run of a search has the same."""


class ForkServers:
    """Starts a node's incarnations, one after the other, from another fork server than the one
    before; a context manager. What ``PYTHONHASHSEED`` says, which tox sets, does not count.

    Args:
        path: of their sockets, each with a letter behind it.
        modules: that they have ready.
    """

    def __init__(self, path: Path, modules: Sequence[str]) -> None:
        with ExitStack() as stack:
            self._servers = [
                stack.enter_context(ForkServerProcess(Path(f"{path}-{seed}"), modules, seed))
                for seed in _HASH_SEEDS
            ]
            self._stack = stack.pop_all()

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        speaks: bool = False,
        hears: bool = False,
    ) -> ProcessSession:
        """As :meth:`ForkServerProcess.start`; the environment says which incarnation it is."""
        server = self._servers[int(env.get(ENV_INCARNATION, "1")) % len(self._servers)]
        return server.start(command, env=env, log=log, speaks=speaks, hears=hears)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()
