"""Nothing that all pairs of faults kill survives the search: on small scenarios, for a sample of
the mutants, and for the right engine, which both must leave alone.

Each scenario is one batch, so that every step of a run has its faults. Where a second batch follows
that has none, a crash in the first finds it anywhere, as the clock will have it, and may break what
neither has tried.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.runs.campaign import Campaign
from bettong.harness.runs.course import Limits
from bettong.harness.scenario import Scenario
from bettong.harness.search.bounds import SearchBounds
from bettong.harness.search.exhaustive import run_everything
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.market_spread import MARKET_SPREAD, quotes_and_orders
from bettong.scenarios.mutants.shipped import MUTANTS, SPARK_ONLY
from bettong.scenarios.showcase import CELSIUS, DOUBLING
from bettong.scenarios.word_count import WORD_COUNT

BOUNDS = SearchBounds(crashes=1, losses=1, batches=1)
SAMPLE = 5
SEED = 15


def small(scenario: Scenario, sent: int = 1) -> Scenario:
    """The scenario with so many messages of each stream, all in one batch."""
    first = {stream: messages[:sent] for stream, messages in scenario.messages().items()}
    return replace(scenario, input=lambda: first, batch=sent, frame=1, partitions=1)


SMALL: Mapping[str, Scenario] = {
    "counting": small(COUNTING),
    "counting_files": replace(small(COUNTING), outputs="files"),
    "counting_partitions": replace(small(COUNTING, 2), partitions=2),
    "word_count": small(WORD_COUNT),
    "celsius": small(CELSIUS),
    "market_spread": replace(
        small(MARKET_SPREAD), input=lambda: {s: m[:1] for s, m in quotes_and_orders().items()}
    ),
    "doubling": small(DOUBLING),
}


def mutants_of(name: str) -> list[Scenario]:
    """A sample of the mutants, each with its mistake in this scenario."""
    right = SMALL[name]
    sink = "sink" if right.outputs == "files" else "receiver"
    fit = [
        mutant
        for mutant in MUTANTS
        if mutant.name not in SPARK_ONLY and set(mutant.classes) <= {"gateway", "protocol", sink}
    ]
    chosen = random.Random(f"{SEED} {name}").sample(fit, SAMPLE)
    return [
        replace(right, name=f"{m.name}_in_{name}", classes=m.classes, expect="invalid")
        for m in chosen
    ]


@pytest.fixture(scope="module")
def backends() -> Iterator[list[LocalBackend]]:
    with LocalBackend(runner="in-process") as one, LocalBackend(runner="in-process") as two:
        yield [one, two]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SMALL)
def test_both_leave_the_right_engine_alone(
    backends: list[LocalBackend], tmp_path: Path, name: str
) -> None:
    result = run_scenario(
        SMALL[name],
        replace(BOUNDS, exhaustive="pairs"),
        backend=backends[0],
        beside=backends[1:],
        out=tmp_path,
    )
    assert result.verdict == "valid", result.reason
    assert result.details["exhaustive"]["agrees"]


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "mutant", [m for name in SMALL for m in mutants_of(name)], ids=lambda m: m.name
)
def test_what_all_pairs_kill_the_search_kills_too(
    backends: list[LocalBackend], tmp_path: Path, mutant: Scenario
) -> None:
    limits = Limits(idle_s=20)
    result = run_scenario(
        mutant,
        BOUNDS,
        backend=backends[0],
        beside=backends[1:],
        out=tmp_path / "search",
        limits=limits,
    )
    if result.verdict == "invalid":
        return  # whatever all pairs say, nothing has survived
    assert result.verdict == "valid", result.reason
    campaign = Campaign(
        backends[0],
        mutant,
        tmp_path / "pairs",
        mutant.messages(),
        beside=backends[1:],
        limits=limits,
    )
    whole = run_everything(campaign, replace(BOUNDS, exhaustive="pairs"))
    assert not whole.of("violation")
