"""What is right where the rows of a job come in more steps."""

from __future__ import annotations

from typing import Any

import pytest

from bettong.harness.queries.job.compare import Bag
from bettong.harness.queries.job.inputs import Recorded, Rows
from bettong.harness.queries.job.judge import Judged
from bettong.harness.queries.job.more_steps import InMoreSteps, divisible
from bettong.harness.queries.job.rules import Expected
from bettong.harness.queries.job.workload import FEW_STEPS, FEWER_STEPS, MORE_STEPS, PLAIN
from bettong.harness.queries.run.observation import QueryRun

FEW = [{"id": "a", "n": 0}, {"id": "b", "n": 1}]
NUMBERED = [{"id": "a", "n": 0}, {"id": "b", "n": 0}]
"""Each row has its place within its batch."""
TWICE = [*FEW, FEW[0]]


def shown(rows: list[dict[str, Any]], *, cut: str = "twelve", drained: bool = True) -> QueryRun:
    return QueryRun(rows=rows, drained=drained, cut=(cut,))


def in_more_steps(
    clean: QueryRun,
    *,
    fewer: tuple[list[dict[str, Any]], ...] = (FEW, FEW),
    few: tuple[list[dict[str, Any]], ...] = (),
) -> InMoreSteps:
    judged = Judged(Bag(), Expected(FEW), columns=("id", "n"))
    runs = {v.name: shown(rows) for v, rows in zip(FEWER_STEPS, fewer, strict=True)}
    few = few or fewer[:1] * len(FEW_STEPS)
    runs |= {v.name: shown(rows) for v, rows in zip(FEW_STEPS, few, strict=True)}
    runs[MORE_STEPS.name] = clean
    each_once = lambda variant: runs.pop(variant.name)  # noqa: E731
    return InMoreSteps(Bag(), judged, None, {PLAIN.name: FEW}, each_once)


def kinds(steps: InMoreSteps, run: QueryRun) -> set[str]:
    return {a.kind for a in steps.judged(run).run(run).anomalies}


@pytest.mark.parametrize(
    ("clean", "fewer", "rows", "expected"),
    [
        (FEW, (FEW, FEW), FEW, set()),
        (FEW, (FEW, FEW), FEW[:1], {"Loss"}),
        # Wrong in ten batches only: that is not how rows are cut.
        (FEW[:1], (FEW, FEW), FEW[:1], {"Loss"}),
        (TWICE, (FEW, FEW), TWICE, {"Duplicate"}),
        # So it is in fewer, cut at the same places.
        (NUMBERED, (NUMBERED, FEW), NUMBERED, set()),
        (NUMBERED, (FEW, NUMBERED), NUMBERED[:1], {"Loss"}),
        (TWICE, (TWICE, TWICE), TWICE, set()),
        (TWICE, (TWICE, TWICE), [*TWICE, FEW[0]], {"Duplicate"}),
    ],
)
def test_it_is_as_before_unless_that_hangs_on_how_rows_are_cut(
    clean: list[dict[str, Any]],
    fewer: tuple[list[dict[str, Any]], ...],
    rows: list[dict[str, Any]],
    expected: set[str],
) -> None:
    steps = in_more_steps(shown(clean), fewer=fewer)
    assert kinds(steps, shown(rows)) == expected
    assert kinds(steps, shown(rows)) == expected


@pytest.mark.parametrize(
    ("few", "expected"),
    [
        # Eight of something are used up in nine batches as well.
        ((FEW,) * 5, {"Loss"}),
        *(((FEW,) * n + (NUMBERED,) + (FEW,) * (4 - n), set()) for n in range(5)),
    ],
)
def test_what_is_wrong_in_nine_batches_and_not_in_four_is_no_matter_of_how_rows_are_cut(
    few: tuple[list[dict[str, Any]], ...], expected: set[str]
) -> None:
    steps = in_more_steps(shown(FEW[1:]), fewer=(FEW[1:], FEW[1:]), few=few)
    assert kinds(steps, shown(FEW[1:])) == expected


def test_what_hangs_on_how_rows_are_cut_is_told() -> None:
    steps = in_more_steps(shown(TWICE), fewer=(TWICE, FEW))
    steps.judged(shown(TWICE))
    (told,) = steps.varying
    assert "2 with the same twice, 3 with twelve steps" in told


def test_a_run_without_a_fault_that_is_there_is_not_made_again() -> None:
    steps = in_more_steps(shown(FEW))
    clean = shown(FEW[:1])
    judged = steps.judged(clean, without_fault=True)
    assert {a.kind for a in judged.run(clean).anomalies} == {"Loss"}


def test_of_a_run_that_does_not_end_nothing_is_learned() -> None:
    steps = in_more_steps(shown(FEW[:1], drained=False), fewer=(NUMBERED, NUMBERED))
    assert kinds(steps, shown(FEW[:1])) == {"Loss"}


@pytest.mark.parametrize(("cut", "right"), [("twelve", False), ("otherwise", True)])
def test_what_a_restart_cuts_otherwise_is_held_against_all_runs(cut: str, right: bool) -> None:
    steps = in_more_steps(shown(NUMBERED), fewer=(NUMBERED, FEW))
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
