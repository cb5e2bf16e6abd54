"""The checkers that judge runs, found by name."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

import pytest

from bettong.harness.checkers.registry import GROUP, SHIPPED, History, check_history, checkers
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

NOTHING = History([], [], [])


def opened(incarnation: int) -> TraceEvent:
    return TraceEvent("epoch=1/sink.open", "before", "driver", incarnation=incarnation)


def test_those_that_ship_judge_the_trace() -> None:
    assert check_history(NOTHING, SHIPPED) == ([], [])
    ((found,), failures) = check_history(History([], [], [opened(1), opened(2)]), SHIPPED)
    assert found.kind == "Violation" and not failures


def test_a_checker_that_fails_is_named_and_the_others_are_heard() -> None:
    def fails(history: History) -> Iterable[Anomaly]:
        yield Anomaly("Violation")
        raise ValueError("cannot\nread")

    def odd(history: History) -> Iterable[Anomaly]:
        return ["wrong"]  # type: ignore[list-item]

    right = Anomaly("Violation", note="right")
    found, failures = check_history(
        NOTHING, {"fails": fails, "odd": odd, "right": lambda _: [right]}
    )
    assert found == [right]
    assert failures[0].startswith("the checker fails failed: ValueError: cannot read")
    assert failures[1] == "the checker odd gave 'wrong', which is no Anomaly"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("fencing", "json:dumps", "two checkers are called 'fencing'"),
        ("own", "json:__name__", r"own \(json:__name__\) is no function"),
        ("own", "json:dmps", r"the checker own \(json:dmps\) cannot be loaded"),
    ],
)
def test_a_package_s_mistake_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    point = metadata.EntryPoint(name, value, GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point])
    checkers.cache_clear()
    try:
        with pytest.raises(BettongError, match=words):
            checkers()
    finally:
        checkers.cache_clear()
