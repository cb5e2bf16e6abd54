"""Whether two runs of a sink at the same time leave each other alone.

What a run shows must come of its own faults. A sink that keeps its rows, or a note of its batches,
in a place that is the same in every run shows what another one did to it: rows that were taken
away, or, worse, rows that make up for a loss. So before runs go on side by side two of them are
interleaved on purpose, and compared with what they show alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.judge import fingerprint
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.lineage.errors import BettongError
from bettong.lineage.search.executor import BudgetSpentError
from bettong.lineage.trace import TraceEvent

REPLAYED = DriverCrash(Point("batch=1/commits"))
_EARLIER = "batch=0/offsets"


def apart(first: QueryRunner, second: QueryRunner, clean: QueryRun, replayed: QueryRun) -> bool:
    """Whether two runs, interleaved, show what they show alone.

    The first one is stopped where it dies, before ``commits/1``. Meanwhile the second one makes an
    empty target, in which no row may be seen, and stops before ``offsets/0``: it has written
    nothing yet, so nothing of it can stand in for what it took away. The first one replays its
    batch and ends; then the second one writes all its rows, beside whatever the first one has
    left.

    Args:
        clean: a run without faults, alone.
        replayed: a run under :data:`REPLAYED`, alone.

    Raises BudgetSpentError.
    """
    try:
        return _Interleaved(first, second).like(clean, replayed)
    except BudgetSpentError:
        raise
    except BettongError:  # setup() or read() failed, as they do not alone
        return False


class _Interleaved:
    def __init__(self, first: QueryRunner, second: QueryRunner) -> None:
        self._first, self._second = first, second
        self._dies, self._follows, self._over = (threading.Event() for _ in range(3))

    def like(self, clean: QueryRun, replayed: QueryRun) -> bool:
        with ThreadPoolExecutor(1) as beside:
            other = beside.submit(self._run_second)
            try:
                replay = self._first.run(
                    [REPLAYED],
                    replay_layout=1,
                    hold=_once("batch=1/commits", self._dies, self._follows),
                )
            finally:
                self._dies.set()
                self._over.set()
            whole = other.result()
        return (
            whole is not None
            and fingerprint(whole) == fingerprint(clean)
            and _shown(replay) == _shown(replayed)
        )

    def _run_second(self) -> QueryRun | None:
        """None: there were rows where setup() had made an empty target."""
        self._dies.wait()
        try:
            if self._second.left_by_setup():
                return None
            return self._second.run(hold=_once(_EARLIER, self._follows, self._over))
        finally:
            self._follows.set()


def _shown(run: QueryRun) -> object:
    """What a run under a fault ended with; its steps are those of a race."""
    rows = sorted(repr(sorted(row.items())) for row in run.rows)
    return rows, run.drained, bool(run.errors), bool(run.unreadable)


def _once(
    step: str, reached: threading.Event, go_on: threading.Event
) -> Callable[[TraceEvent], None]:
    """Says that a step was reached for the first time, and waits there until told to go on."""

    def hold(event: TraceEvent) -> None:
        if (event.step, event.phase) == (step, "before") and not reached.is_set():
            reached.set()
            go_on.wait()

    return hold
