"""What is right where a job's rows come in more steps than it was given: some mistakes, such as ids
of batches that are compared as text, show in ten batches and not in four."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from bettong.harness.queries.job.compare import Compare
from bettong.harness.queries.job.envelope import envelope
from bettong.harness.queries.job.feed import in_more_steps
from bettong.harness.queries.job.inputs import Input, StepInput
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.rules import Row
from bettong.harness.queries.job.workload import MORE_STEPS
from bettong.harness.queries.run.observation import QueryRun


def divisible(given: Input) -> bool:
    """Whether an input has rows for so many steps."""
    steps = in_more_steps(given, MORE_STEPS.at_least) if isinstance(given, StepInput) else []
    return len(steps) >= MORE_STEPS.at_least


class InMoreSteps:
    """Asks a run without a fault once, when it is needed first.

    Args:
        by_cut: what batches that are cut otherwise than in the plain run are held against, where
            they are.
        judged: what those that are cut as in it are held against.
        clean: the rows of the runs without faults, by their variant.
        hangs: whether what is right may hang on how rows are cut: a watermark says which come too
            late, or larger batches give something else.
        ask: makes the run.
    """

    def __init__(
        self,
        compare: Compare,
        judged: Judged,
        by_cut: Judged | None,
        clean: Mapping[str, Sequence[Row]],
        hangs: bool,
        ask: Callable[[], QueryRun],
    ) -> None:
        self._compare, self._judged, self._by_cut = compare, judged, by_cut
        self._clean, self._hangs, self._ask = clean, hangs, ask
        self._one_asks = threading.Lock()

    def judged(self, run: QueryRun) -> Judged:
        """What a run is held against: as before. Only where it may hang on how rows are cut, what
        the run without a fault has that cuts them so; where a restart has cut them otherwise, as
        it may where there is state, what all runs without faults have."""
        with self._one_asks:
            cut, alone, otherwise = self._known
        return alone if run.cut == cut else otherwise

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], Judged, Judged]:
        before = self._by_cut or self._judged
        run = self._ask()
        wrong = {a.kind for a in before.run(run).anomalies}
        # What is the same only within a batch is there more often in smaller ones.
        if not run.drained or not wrong or not (self._hangs or wrong == {"Duplicate"}):
            return run.cut, before, before
        own = {MORE_STEPS.name: run.rows}
        alone, all_of_them = (
            before.cut_otherwise(envelope(self._compare, rows), list(rows.values()))
            for rows in (own, {**self._clean, **own})
        )
        return run.cut, alone, all_of_them
