"""A query that does not find its checkpoint when it is started again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bettong.harness.queries.judge import judge_run
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.trace import TraceEvent

SOURCE = Input()


def run(*steps: tuple[int, str]) -> QueryRun:
    """Of steps, each with the incarnation that took it."""
    events = [TraceEvent(step, "after", "driver", number) for number, step in steps]
    return QueryRun(rows=SOURCE.all(), drained=True, events=events)


DONE = ((1, "batch=0/offsets"), (1, "batch=0/commits"), (1, "batch=1/offsets"))


@pytest.mark.parametrize(
    ("more", "batch"),
    [
        ([], None),
        ([(2, "batch=1/commits"), (2, "batch=2/offsets")], None),
        ([(2, "batch=1/commits"), (1, "batch=1/offsets")], None),
        ([(1, "batch=0/offsets")], 0),
        ([(2, "batch=0/offsets")], 0),
        ([(2, "batch=1/offsets"), (2, "batch=1/commits"), (3, "batch=1/offsets")], 1),
    ],
    ids=[
        "no restart",
        "goes on",
        "one that takes its time",
        "begins again itself",
        "begins again",
        "at its third start",
    ],
)
def test_a_batch_that_is_done_is_not_planned_again(
    more: list[tuple[int, str]], batch: int | None
) -> None:
    seen = run(*DONE, *more)
    assert seen.planned_again == batch
    kinds = judge_run(seen, SOURCE, ordered=False).kinds
    assert kinds == (set() if batch is None else {"StateDivergence"})


def test_a_checkpoint_that_was_taken_away_is_not_missed() -> None:
    seen = run(*DONE, (2, "batch=0/offsets"))
    assert replace(seen, anew=2).planned_again is None
