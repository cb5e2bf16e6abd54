"""Two runs are interleaved so that whatever they keep in the same place shows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from row_a_batch import Runner, Store

from bettong.harness.queries.apart import REPLAYED, apart, same_rows
from bettong.harness.queries.judge import fingerprint
from bettong.harness.queries.sense import expect_empty
from bettong.lineage.errors import BettongError, UsageError


def held(first: Runner, second: Runner, left: Sequence[dict[str, str]] = ()) -> bool:
    clean, replayed = first.run(), first.run([REPLAYED])
    ways = first, second
    return apart(
        *ways,  # type: ignore[arg-type]
        clean,
        replayed,
        fingerprint=fingerprint,
        same=same_rows,
        left=left,
    )


@pytest.mark.parametrize("marked", [True, False])
def test_runs_with_stores_of_their_own_leave_each_other_alone(marked: bool) -> None:
    mine, other = Store(), Store()
    assert held(Runner(mine, mine, marked=marked), Runner(other, other, marked=marked))


@pytest.mark.parametrize("marked", [True, False])
def test_rows_in_the_same_place_show(marked: bool) -> None:
    place = Store()
    assert not held(Runner(place, place, marked=marked), Runner(place, place, marked=marked))


def test_rows_by_key_in_the_same_place_show_although_both_runs_write_the_same() -> None:
    place = Store()
    first, second = (Runner(place, Store(), marked=False, by_key=True) for _ in range(2))
    assert not held(first, second)


def test_notes_in_the_same_place_show_although_the_rows_are_apart() -> None:
    notes = Store()
    assert not held(Runner(Store(), notes, marked=True), Runner(Store(), notes, marked=True))


def test_rows_that_no_setup_takes_away_show_although_each_run_ends_with_the_same() -> None:
    place = Store()
    first, second = (
        Runner(place, Store(), marked=False, clears=False, by_key=True) for _ in range(2)
    )
    assert not held(first, second)


def test_rows_that_every_target_begins_with_are_nothing_of_another_run() -> None:
    mine, other = Store(["m/old"]), Store(["m/old"])
    first, second = Runner(mine, mine, marked=True), Runner(other, other, marked=True)
    assert held(first, second, left=[{"id": "m/old"}])
    assert not held(first, second)


def test_a_runner_that_fails_beside_another_is_not_alone() -> None:
    class Failing(Runner):
        def left_by_setup(self) -> list[dict[str, str]]:
            raise BettongError("setup() does not return")

    mine = Store()
    first = Runner(mine, mine, marked=True)
    assert not held(first, Failing(Store(), Store(), marked=True))


def test_rows_that_setup_leaves_are_reported_before_they_hide_a_loss() -> None:
    expect_empty("Mine", [])
    with pytest.raises(UsageError, match=r"setup\(\) leaves 2 row\(s\) of an earlier run"):
        expect_empty("Mine", [{"id": "m/1"}, {"id": "m/2"}])
