"""The whole space of faults beside the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.kinds import Crash, Omit
from bettong.harness.faults.point import Point
from bettong.harness.faults.schedule import Schedule
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.exhaustive import LOG, Everything, Shown, compare, left_nothing
from bettong.harness.search.occurrences import FaultedStep, Occurrence, Reading, Restart
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result, Verdict
from bettong.lineage.search.loop import Budget
from bettong.scenarios.counting import COUNTING_TWO

ONE, OTHER = frozenset({"crash(a, before x)"}), frozenset({"crash(b, before x)"})


@pytest.mark.parametrize(
    ("outcomes", "searched", "verdict"),
    [
        (("good", "good"), "valid", "valid"),
        (("good", "violation"), "invalid", "invalid"),
        (("good", "impossible"), "valid", "valid"),
        (("good", "violation"), "valid", "unknown"),
        (("good", "good"), "invalid", "unknown"),
        (("good", "not-injected"), "valid", "unknown"),
    ],
)
def test_a_verdict_stands_only_when_the_whole_space_agrees(
    outcomes: tuple[str, str], searched: Verdict, verdict: Verdict
) -> None:
    whole = Everything([Shown(ONE, outcomes[0]), Shown(OTHER, outcomes[1])])
    found = compare(whole, Result("s", verdict=searched))
    assert found.verdict == verdict
    assert found.details["exhaustive"]["agrees"] == (verdict != "unknown")
    if outcomes[1] in ("violation", "not-injected") and verdict == "unknown":
        assert "crash(b, before x)" in found.reason


@pytest.fixture(scope="module")
def backends() -> Iterator[list[LocalBackend]]:
    with LocalBackend(runner="in-process") as one, LocalBackend(runner="in-process") as two:
        yield [one, two]


def searched(
    backends: list[LocalBackend],
    out: Path,
    broken: bool,
    budget: Budget | None,
    reach: SearchBounds,
) -> Result:
    classes = {"receiver": "bettong.scenarios.mutants.receivers:CommitsAgain"} if broken else {}
    scenario = replace(COUNTING_TWO, classes=classes)  # type: ignore[arg-type]
    one, *beside = backends
    return run_scenario(scenario, reach, backend=one, beside=beside, out=out, budget=budget)


def test_what_was_run_is_kept_and_the_rest_is_reported(
    backends: list[LocalBackend], tmp_path: Path
) -> None:
    reach = SearchBounds(losses=0, batches=1, exhaustive="pairs")
    for runs in (2, 4):
        result = searched(backends, tmp_path, False, Budget(runs=2), reach)
        reported = result.details["exhaustive"]
        assert (result.verdict, reported["runs"], reported["agrees"]) == ("unknown", runs, None)
        assert f"{reported['left']} schedules" in result.reason
    whole = (tmp_path / LOG).read_text()
    (tmp_path / LOG).write_text(whole + '{"ids": ["torn')
    again = searched(backends, tmp_path, False, Budget(runs=1), reach)
    assert again.details["exhaustive"]["runs"] in (5, 6)  # two go on at a time
    with pytest.raises(UsageError, match="another question"):
        searched(backends, tmp_path, False, Budget(runs=1), replace(reach, exhaustive="singles"))


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_every_single_crash_agrees_with_the_search(
    backends: list[LocalBackend], tmp_path: Path, broken: bool
) -> None:
    reach = SearchBounds(losses=0, batches=1, exhaustive="singles")
    result = searched(backends, tmp_path, broken, None, reach)
    reported = result.details["exhaustive"]
    assert reported["agrees"], result.reason
    assert (reported["left"], bool(reported["violated"])) == (0, broken)
    assert result.verdict == ("invalid" if broken else "valid")


@pytest.mark.parametrize(
    ("killed", "back", "nothing"),
    [(3, 9, True), (5, 9, True), (2, 3, True), (0, 1, False), (8, 9, False)],
    ids=["from its beginning", "within", "on the old connection", "on a new one", "later"],
)
def test_a_loss_where_an_end_of_the_link_is_dead_had_nothing_to_lose(
    killed: int, back: int, nothing: bool
) -> None:
    crash = Crash("gateway", Point("gateway.ack/amounts/0", "after"))
    loss = Omit("sender->gateway", Point("sender.send/amounts/1", "before"))
    reading = Reading(
        [
            Occurrence("sender.send/amounts/0", 1, "sender", 1, loss.link, begun=1, ended=2),
            Occurrence(loss.at.step, 1, "sender", 1, loss.link, begun=4, ended=7),
        ],
        [Restart("gateway", 2, back)],
        [FaultedStep(crash, "gateway", killed)],
    )
    seen = SimpleNamespace(
        outcome="not-injected", schedule=Schedule((crash, loss)), not_fired=(loss.id,)
    )
    assert left_nothing(seen, reading) == nothing  # type: ignore[arg-type]
