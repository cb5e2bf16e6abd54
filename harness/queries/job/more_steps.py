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
from bettong.harness.queries.job.workload import (
    FEW_STEPS,
    FEWER_STEPS,
    MORE_STEPS,
    PLAIN,
    Variant,
)
from bettong.harness.queries.run.observation import QueryRun


def divisible(given: Input) -> bool:
    """Whether an input has rows for so many steps."""
    steps = in_more_steps(given, MORE_STEPS.at_least) if isinstance(given, StepInput) else []
    return len(steps) >= MORE_STEPS.at_least


class InMoreSteps:
    """Asks for runs without a fault once, when they are needed first.

    Args:
        by_cut: what batches that are cut otherwise than in the plain run are held against, where
            they are.
        judged: what those that are cut as in it are held against.
        clean: the rows of the runs without faults, by their variant.
        ask: makes a run.

    Attributes:
        varying: what is another than in the plain run because rows are cut otherwise.
    """

    def __init__(
        self,
        compare: Compare,
        judged: Judged,
        by_cut: Judged | None,
        clean: Mapping[str, Sequence[Row]],
        ask: Callable[[Variant], QueryRun],
    ) -> None:
        self.varying: tuple[str, ...] = ()
        self._compare, self._before = compare, by_cut or judged
        self._clean, self._ask = clean, ask
        self._one_asks = threading.Lock()
        self._twelve: QueryRun | None = None

    def judged(self, run: QueryRun, *, without_fault: bool = False) -> Judged:
        """What a run is held against: as before. Only where how rows are cut makes the output
        another one, what the run without a fault has that cuts them so; where a restart has cut
        them otherwise, as it may where there is state, what all runs without faults have."""
        with self._one_asks:
            if without_fault:
                self._twelve = run  # which need not be asked for
            cut, alone, otherwise = self._known
        return alone if run.cut == cut else otherwise

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], Judged, Judged]:
        before = self._before
        run = self._twelve or self._ask(MORE_STEPS)
        # What is wrong by the cut shows in fewer batches as well, that are cut at the same places;
        # what is not is wrong by itself.
        if not run.drained or self._is_right(run) or self._by_their_number():
            return run.cut, before, before
        own = {MORE_STEPS.name: run.rows}
        self.varying = envelope(self._compare, {PLAIN.name: self._clean[PLAIN.name], **own}).varying
        alone, all_of_them = (
            before.cut_otherwise(envelope(self._compare, rows), list(rows.values()))
            for rows in (own, {**self._clean, **own})
        )
        return run.cut, alone, all_of_them

    def _by_their_number(self) -> bool:
        """Whether all is right in fewer batches, or in as few as the job was given, where eight of
        something are not used up either."""
        return any(
            all(self._is_right(self._ask(variant)) for variant in fewer)
            for fewer in (FEWER_STEPS, FEW_STEPS)
        )

    def _is_right(self, run: QueryRun) -> bool:
        return not self._before.run(run).anomalies
