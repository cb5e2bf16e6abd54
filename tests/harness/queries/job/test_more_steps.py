"""What is right where the rows of a job come in more steps."""

from __future__ import annotations

from typing import Any

import pytest

from bettong.harness.queries.job.compare import Bag
from bettong.harness.queries.job.inputs import Recorded, Rows
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.more_steps import InMoreSteps, divisible
from bettong.harness.queries.job.rules import Expected
from bettong.harness.queries.run.observation import QueryRun

FEW = [{"id": "a", "n": 0}, {"id": "b", "n": 1}]
NUMBERED = [{"id": "a", "n": 0}, {"id": "b", "n": 0}]
"""Each row has its place within its batch."""


def shown(rows: list[dict[str, Any]], *, cut: str = "twelve", drained: bool = True) -> QueryRun:
    return QueryRun(rows=rows, drained=drained, cut=(cut,))


def in_more_steps(clean: QueryRun, *, hangs: bool = False) -> InMoreSteps:
    judged = Judged(Bag(), Expected(FEW), columns=("id", "n"))
    asked: list[QueryRun] = []

    def ask() -> QueryRun:
        assert not asked, "one run is enough"
        asked.append(clean)
        return clean

    rows = {"the same twice": FEW}
    return InMoreSteps(Bag(), judged, None, rows, hangs, ask)


def kinds(steps: InMoreSteps, run: QueryRun) -> set[str]:
    return {a.kind for a in steps.judged(run).run(run).anomalies}


@pytest.mark.parametrize(
    ("clean", "hangs", "rows", "expected"),
    [
        (FEW, False, FEW, set()),
        (FEW, False, FEW[:1], {"Loss"}),
        (FEW[:1], False, FEW[:1], {"Loss"}),  # nobody has said that it may hang on that
        (NUMBERED, True, NUMBERED, set()),
        (NUMBERED, True, NUMBERED[:1], {"Loss"}),
        ([*FEW, FEW[0]], False, [*FEW, FEW[0]], set()),  # known once within a batch
        ([*FEW, FEW[0]], False, [*FEW, FEW[0], FEW[0]], {"Duplicate"}),
    ],
)
def test_it_is_as_before_unless_it_may_hang_on_how_rows_are_cut(
    clean: list[dict[str, Any]], hangs: bool, rows: list[dict[str, Any]], expected: set[str]
) -> None:
    steps = in_more_steps(shown(clean), hangs=hangs)
    assert kinds(steps, shown(rows)) == expected
    assert kinds(steps, shown(rows)) == expected


def test_of_a_run_that_does_not_end_nothing_is_learned() -> None:
    steps = in_more_steps(shown(FEW[:1], drained=False), hangs=True)
    assert kinds(steps, shown(FEW[:1])) == {"Loss"}


@pytest.mark.parametrize(("cut", "right"), [("twelve", False), ("otherwise", True)])
def test_what_a_restart_cuts_otherwise_is_held_against_all_runs(cut: str, right: bool) -> None:
    steps = in_more_steps(shown(NUMBERED), hangs=True)
    assert (kinds(steps, shown(FEW, cut=cut)) == set()) == right


@pytest.mark.parametrize(
    ("given", "enough"),
    [
        (Rows("id STRING", per_step=3, steps=4), True),
        (Rows("id STRING", per_step=11, steps=1), False),
        (Rows("id STRING", per_step=1, steps=12, closing={"id": "z"}), True),
        (Recorded("rate"), False),
    ],
)
def test_an_input_has_rows_for_so_many_steps(given: Any, enough: bool) -> None:
    assert divisible(given) == enough
