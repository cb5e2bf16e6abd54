"""The formula's solver: limits are of one question, and others go on while it works."""

from __future__ import annotations

import threading
from itertools import combinations

import pytest

from bettong.lineage.errors import BettongError
from bettong.lineage.search.formula import Formula


def pigeons(holes: int) -> Formula:
    """One pigeon more than there are holes, each in one of its own: this cannot be."""
    formula = Formula()
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
def test_other_threads_go_on_while_the_solver_works() -> None:
    formula = pigeons(14)  # far too many to be answered
    given_up = []

    def ask() -> None:
        try:
            formula.holds()
        except BettongError as e:
            given_up.append(str(e))

    thread = threading.Thread(target=ask)
    thread.start()
    while thread.is_alive():  # one that is held up never comes to interrupt
        formula._solver.interrupt()
        thread.join(0.01)
    assert given_up
    formula.close()
