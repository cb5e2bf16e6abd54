"""Whether two runs of a query at the same time leave each other alone.

What a run shows must come of its own faults. A query that keeps its rows, or a note of its batches,
in a place that is the same in every run shows what another one did to it: rows that were taken
away, or, worse, rows that make up for a loss. So before runs go on side by side two of them are
interleaved on purpose, and compared with what they show alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bettong.harness.faults.point import Point
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.runner import QueryRunner
from bettong.lineage.errors import BettongError
from bettong.lineage.search.executor import BudgetSpentError
from bettong.lineage.trace import TraceEvent

Rows = Sequence[Mapping[str, Any]]
REPLAYED = DriverCrash(Point("batch=1/commits"))
_EARLIER = "batch=0/offsets"


def apart(
    first: QueryRunner,
    second: QueryRunner,
    clean: QueryRun,
    replayed: QueryRun,
    *,
    fingerprint: Callable[[QueryRun], str],
    same: Callable[[Rows, Rows], bool],
    left: Rows = (),
) -> bool:
    """Whether two runs, interleaved, show what they show alone.

    The first one is stopped where it dies, before ``commits/1``. Meanwhile the second one makes an
    empty target, in which no row may be seen, and stops before ``offsets/0``: it has written
    nothing yet, so nothing of it can stand in for what it took away. The first one replays its
    batch and ends; then the second one writes all its rows, beside whatever the first one has
    left.

    Args:
        clean: a run without faults, alone.
        replayed: a run under :data:`REPLAYED`, alone.
        fingerprint: equal for runs without faults that are alike.
        same: whether these are the same rows to who judges them.
        left: the rows that every target begins with.

    Raises BudgetSpentError.
    """
    try:
        replay, whole = _interleaved(first, second, left)
    except BudgetSpentError:
        raise
    except BettongError:  # setup() or read() failed, as they do not alone
        return False
    return (
        whole is not None
        and fingerprint(whole) == fingerprint(clean)
        and same(clean.rows, whole.rows)
        # The steps of a replay beside another run are those of a race.
        and _ended(replay) == _ended(replayed)
        and same(replayed.rows, replay.rows)
    )


def _interleaved(
    first: QueryRunner, second: QueryRunner, left: Rows
) -> tuple[QueryRun, QueryRun | None]:
    """The replay of the first one, and what the second one has done; None: there were other rows
    than those that ``left`` says where setup() had made an empty target."""
    dies, follows, over = (threading.Event() for _ in range(3))

    def run_second() -> QueryRun | None:
        dies.wait()
        try:
            if second.left_by_setup() != list(left):
                return None
            return second.run(hold=_once(_EARLIER, follows, over))
        finally:
            follows.set()

    with ThreadPoolExecutor(1) as beside:
        other = beside.submit(run_second)
        try:
            replay = first.run(
                [REPLAYED], replay_layout=1, hold=_once("batch=1/commits", dies, follows)
            )
        finally:
            dies.set()
            over.set()
        return replay, other.result()


def _ended(run: QueryRun) -> object:
    return run.drained, bool(run.errors), bool(run.unreadable)


def same_rows(a: Rows, b: Rows) -> bool:
    """Whether these are the same rows in any order."""
    return sorted(repr(sorted(x.items())) for x in a) == sorted(repr(sorted(x.items())) for x in b)


def _once(
    step: str, reached: threading.Event, go_on: threading.Event
) -> Callable[[TraceEvent], None]:
    """Says that a step was reached for the first time, and waits there until told to go on."""

    def hold(event: TraceEvent) -> None:
        if (event.step, event.phase) == (step, "before") and not reached.is_set():
            reached.set()
            go_on.wait()

    return hold
