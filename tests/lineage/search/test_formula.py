"""The formula's solver: limits are of one question, and others go on while it works."""

from __future__ import annotations

import os
import threading
from itertools import combinations

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


def test_other_threads_go_on_while_the_solver_works() -> None:
    formula, asked, answered = pigeons(7), threading.Event(), threading.Event()

    def count() -> None:
        asked.wait(60)
        while not answered.is_set():
            turns.append(None)
            os.sched_yield()

    turns: list[None] = []
    thread = threading.Thread(target=count)
    thread.start()
    asked.set()
    assert not formula.holds()
    answered.set()
    thread.join()
    assert len(turns) > 1_000  # one that is held up has a few between asking and answering
    formula.close()
