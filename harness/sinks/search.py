"""The loop: smallest fault sets first, until none is left that the lineage does not explain."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from bettong.harness.sinks.executor import SinkExecutor
from bettong.lineage.executor import Execution
from bettong.lineage.faults import Bounds, Schedule
from bettong.lineage.hypotheses import Hypotheses, minimal


@dataclass
class Found:
    """What a search has found.

    Attributes:
        executions: in the order in which they were run.
        hypotheses: fault sets that the lineage put up.
        pruned: of these, not run because they leave the same behind as one that was.
        complete: nothing within the bounds is left to be tried.
    """

    executions: list[Execution] = field(default_factory=list)
    hypotheses: int = 0
    pruned: int = 0
    complete: bool = False

    def violations(self) -> list[Execution]:
        """Those whose fault sets are minimal."""
        broken = {e.schedule: e for e in self.executions if e.outcome == "violation"}
        return [broken[schedule] for schedule in minimal(broken)]


def search(executor: SinkExecutor, clean: Execution, bounds: Bounds, seconds: float) -> Found:
    """Try all that the lineage of the clean run and of every good run puts up.

    A fault set that leaves the same behind as one that was run is not run, and neither are its
    supersets: the recoveries are the same.
    """
    found = Found([clean])
    deadline = time.monotonic() + seconds
    done: set[Schedule] = set()
    with Hypotheses(clean.lineage, bounds) as hypotheses:
        while (schedule := hypotheses.smallest()) is not None:
            if time.monotonic() > deadline:
                return found
            found.hypotheses += 1
            chosen = executor.canonical(schedule)
            if chosen in done:
                found.pruned += 1
                hypotheses.exclude_supersets(schedule)
                continue
            execution = executor.run(chosen)
            found.executions.append(execution)
            done.add(chosen)
            if execution.outcome == "good":
                hypotheses.extend(execution.lineage)
                hypotheses.exclude(chosen)
            else:
                hypotheses.exclude_supersets(chosen)
    found.complete = True
    return found
