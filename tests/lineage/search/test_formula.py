"""The formula's solver: limits are of one question, and others go on while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import combinations, count

import pytest

from bettong.lineage.search.executor import BudgetSpentError
from bettong.lineage.search.formula import Formula


def pigeons(holes: int, spent: Callable[[], bool] = lambda: False) -> Formula:
    """One pigeon more than there are holes, each in one of its own: this cannot be."""
    formula = Formula(spent)
    place = [[formula.new() for _ in range(holes)] for _ in range(holes + 1)]
    for pigeon in place:
        formula.clause(*pigeon)
    for hole in zip(*place, strict=True):
        for one, other in combinations(hole, 2):
            formula.clause(-one, -other)
    return formula


def test_what_was_given_up_is_answered_when_there_is_no_limit() -> None:
    formula = pigeons(6)
    assert not formula.fails(conflicts=1)
    assert not formula.holds()
    assert formula.fails(conflicts=1)  # by what it has learned
    formula.close()


@pytest.mark.timeout(120)
def test_an_answer_is_given_up_when_the_time_is_up() -> None:
    asked = iter([False, False, True])
    formula = pigeons(14, lambda: next(asked))  # far too many to be answered
    with pytest.raises(BudgetSpentError):
        formula.holds()
    assert not list(asked)
    formula.close()


def test_an_answer_that_takes_longer_than_one_look_at_the_clock_is_the_same() -> None:
    looks = count()
    formula = pigeons(8, lambda: next(looks) < 0)
    assert not formula.holds()
    assert next(looks) > 0
    formula.close()


@pytest.mark.timeout(120)
def test_other_threads_go_on_while_the_solver_works() -> None:
    formula = pigeons(14)
    given_up = []
    thread = threading.Thread(target=lambda: given_up.append(formula.fails(conflicts=1 << 40)))
    thread.start()
    while thread.is_alive():  # one that is held up never comes to interrupt
        formula._solver.interrupt()
        thread.join(0.01)
    assert given_up == [False]
    formula.close()
