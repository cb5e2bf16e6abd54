"""Bounds by name, and single ones in place of theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bettong.harness.search.bounds import PROFILES, SearchBounds, bounds_of
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CRASH, DUPLICATE, LOSS, PARTITION, PAUSE, STORAGE, WRITE, Fault
from bettong.scenarios.counting import COUNTING

EACH = [Fault(kind, kind) for kind in (CRASH, LOSS, PAUSE, STORAGE, DUPLICATE, PARTITION)]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_tries_each_of_the_kinds_that_hit_real_systems(profile: str) -> None:
    bounds = bounds_of(profile).bounds
    assert all(bounds.allow([fault]) for fault in EACH)


def test_each_profile_goes_further_than_the_one_before() -> None:
    pairs = [(a, b) for a in EACH for b in EACH if a.kind < b.kind]
    assert not any(bounds_of("quick").bounds.allow(pair) for pair in pairs)
    refused = Fault(WRITE, WRITE)
    standard = bounds_of("standard").bounds
    beside = [{f.kind, WRITE} for f in EACH if standard.allow((f, refused))]
    allowed = [{f.kind for f in p} for p in pairs if standard.allow(p)]
    assert [*allowed, *beside] == [{CRASH, LOSS}, {CRASH, WRITE}]
    assert not standard.allow([Fault(CRASH, CRASH), Fault(LOSS, LOSS), refused])
    assert all(bounds_of("standard", {"together": 2}).bounds.allow(pair) for pair in pairs)
    assert all(bounds_of("thorough").bounds.allow(pair) for pair in pairs)
    twice = [Fault("crash 1", CRASH), Fault("crash 2", CRASH)]
    assert not bounds_of("standard").bounds.allow(twice)
    assert bounds_of("thorough").bounds.allow([*twice, Fault("loss", LOSS)])


def test_what_fires_alone_is_said_in_the_words_of_a_verdict() -> None:
    words = bounds_of("standard").words()
    assert "each duplicate or partition or pause or storage alone" in words
    assert "each failed write alone or with a crash of the same node, in the first" in words
    for other in ({"crashes": 2}, {"storage": 0}, {"together": 2}):
        assert "failed write" not in bounds_of("standard", other).words()
    assert "alone" not in bounds_of("standard", {"together": 2}).words()


def test_the_standard_profile_is_the_default() -> None:
    assert bounds_of() == bounds_of("standard") == PROFILES["standard"]
    assert bounds_of(given={"batches": 3, "crashes": None}).pauses == 1


def test_faults_fire_in_as_many_batches_as_the_scenario_has_them_unless_bounds_say() -> None:
    later = replace(COUNTING, batches=3)
    assert bounds_of().over(COUNTING).batches == 2
    assert bounds_of().over(later).words().endswith("in the first 3 batches")
    assert bounds_of(given={"batches": 1}).over(later).batches == 1


def test_a_single_bound_wins_over_the_profile() -> None:
    found = bounds_of("quick", {"pauses": 0, "batches": 1})
    assert (found.pauses, found.batches, found.storage, found.together) == (0, 1, 1, 1)


def test_counts_without_a_profile_are_the_whole_of_it() -> None:
    assert bounds_of(given={"losses": 2}) == SearchBounds(crashes=1, losses=2)
    assert bounds_of(given={"storage": 1, "batches": 3}) == SearchBounds(storage=1, batches=3)


def test_a_misspelt_profile_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean standard"):
        bounds_of("standart")
