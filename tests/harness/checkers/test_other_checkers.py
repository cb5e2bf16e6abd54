from __future__ import annotations

import math

import pytest

from bettong.harness.checkers import (
    Record,
    Snapshot,
    check_atomicity,
    check_running_totals,
    check_state,
    check_stays_visible,
    check_windows,
    died,
    guarantee_of,
    judge,
    satisfies,
    stuck,
)
from bettong.lineage.results import GUARANTEES, AnomalyKind


def test_torn_batches() -> None:
    batches = {0: ["a", "b"], 1: ["c", "d"], 2: ["e"]}
    snapshots = [
        Snapshot("s1", frozenset("ab")),
        Snapshot("s2", frozenset("abc")),
        Snapshot("s3", frozenset("abcde")),
    ]
    (torn,) = check_atomicity(batches, snapshots)
    assert (torn.kind, torn.messages) == ("Torn", ("c", "d"))
    assert torn.seen["snapshot"] == "s2"
    assert torn.note == "batch 1 in part in 1 snapshots, whole later"
    (never,) = check_atomicity(batches, snapshots[:2])
    assert never.note is not None and never.note.endswith("never whole after")
    assert not check_atomicity(batches, [snapshots[0], snapshots[2]])


def test_what_was_visible_stays_visible() -> None:
    a, b = Snapshot("s1", frozenset("ab")), Snapshot("s2", frozenset("b"))
    (gone,) = check_stays_visible([a, b])
    assert (gone.kind, gone.messages, gone.note) == ("Loss", ("a",), "seen, then gone")
    assert not check_stays_visible([b, a])


def test_state() -> None:
    right = {"x": {"count": 3, "sum": 1}, "y": 1, "z": 2}
    wrong = {"x": {"count": 4, "sum": 1}, "z": 2, "w": 0}
    found = [(a.key, a.note) for a in check_state(right, wrong)]
    assert found == [("w", "unexpected"), ("x", "differs in count"), ("y", "missing")]
    assert not check_state(right, dict(right))


def test_running_totals() -> None:
    seen = [Record("a", "k", 1), Record("b", "k", 3), Record("x", "j", 0), Record("c", "k", 2)]
    (back,) = check_running_totals(seen, lambda value: float(value))
    assert back.messages == ("b", "c")
    assert back.seen == 2.0


def test_a_total_that_is_no_number_is_none() -> None:
    """It must not hide that what follows it is less than what came before it."""
    seen = [Record(str(n), "k", total) for n, total in enumerate((5.0, math.nan, 4.0))]
    found = check_running_totals(seen, float)
    assert [back.messages for back in found] == [("0", "1"), ("1", "2")]


def test_windows() -> None:
    expected = {("k", 0): 5, ("k", 10): 7, ("k", 20): 1}
    fired = [("k", 0, 4), ("k", 0, 5), ("k", 10, 8), ("k", 30, 1)]
    once = [(a.kind, a.messages[0]) for a in check_windows(expected, fired)]
    assert once == [
        ("Duplicate", "k@0"),
        ("Corrupt", "k@10"),
        ("Loss", "k@20"),
        ("Phantom", "k@30"),
    ]
    update = [(a.kind, a.messages[0]) for a in check_windows(expected, fired, "update")]
    assert update == once[1:]
    twice = check_windows({("k", 0): 5}, [("k", 0, 5), ("k", 0, 5)], "update")
    assert [a.kind for a in twice] == ["Duplicate"]


@pytest.mark.parametrize(
    ("kinds", "level"),
    [
        (set(), "effectively-once"),
        ({"Reorder"}, "effectively-once"),
        ({"Duplicate"}, "at-least-once"),
        ({"Torn"}, "at-least-once"),
        ({"Loss"}, "at-most-once"),
        ({"Stuck"}, "at-most-once"),
        ({"Loss", "Duplicate"}, "none"),
        ({"Phantom"}, "none"),
        ({"Corrupt"}, "none"),
        ({"StateDivergence"}, "none"),
    ],
)
def test_levels(kinds: set[AnomalyKind], level: str) -> None:
    assert guarantee_of(kinds) == level


def test_satisfies_is_the_order_of_levels() -> None:
    assert all(satisfies(level, level) and satisfies(level, "none") for level in GUARANTEES)
    assert all(satisfies("effectively-once", level) for level in GUARANTEES)
    assert not satisfies("at-most-once", "at-least-once")
    assert not satisfies("at-least-once", "at-most-once")


def test_stuck_says_where() -> None:
    judgement = judge([stuck("batch=3/sink.commit", ["in/1"])])
    assert (judgement.verdict, judgement.guarantee) == ("invalid", "at-most-once")
    assert judgement.anomalies[0].seen == "batch=3/sink.commit"
    assert "1 Stuck" in judgement.reason


def test_a_process_that_died_is_a_violation_that_says_nothing_of_outputs() -> None:
    judgement = judge([died("gateway", 70, "no memory", "after gateway.append/lines/3")])
    assert (judgement.verdict, judgement.guarantee) == ("invalid", "effectively-once")
    assert judge(judgement.anomalies, expect="none").verdict == "valid"
    (found,) = judgement.anomalies
    assert found.seen == {
        "node": "gateway",
        "status": 70,
        "last_words": "no memory",
        "last_step": "after gateway.append/lines/3",
    }
