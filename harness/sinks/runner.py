"""Runs of one sink, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bettong.harness.sinks.arena import Arena
from bettong.harness.sinks.job import Target
from bettong.harness.sinks.observed import SinkRun
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.run import OneRun
from bettong.harness.sinks.sink_faults import AnyFault, LostExecutor
from bettong.harness.sinks.situations import Situation
from bettong.harness.sinks.wires import Wires


class SinkRunner:
    """Runs one sink, again and again.

    ``two_cores`` gives the arena of runs in which two tasks are to be there at once.
    """

    def __init__(
        self,
        arena: Arena,
        target: Target,
        source: Input,
        wires: Wires,
        two_cores: Callable[[], Arena] | None = None,
    ) -> None:
        self._arena = arena
        self._target = target
        self._source = source
        self._wires = wires
        self._two_cores = two_cores or (lambda: arena)

    def run(
        self,
        faults: Sequence[AnyFault] = (),
        *,
        replay_layout: int = 0,
        real: bool = False,
    ) -> SinkRun:
        """One run.

        Args:
            faults: struck together.
            replay_layout: layout of the rows from the second incarnation on.
            real: crashes are SIGKILL.

        Raises SinkError when the sink cannot even set up or read back.
        """
        first, later = self._arena.pool, self._arena.pool
        if any(isinstance(fault, LostExecutor) for fault in faults):
            first = later = self._two_cores().pool
        elif any(isinstance(fault, Situation) and fault.cores for fault in faults):
            later = self._two_cores().pool
        run = OneRun(
            self._arena,
            (first, later),
            self._target,
            self._source,
            self._wires,
            faults,
            replay_layout,
            real,
        )
        return run.run()
