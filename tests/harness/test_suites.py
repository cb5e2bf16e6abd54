from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.suites import Shard, SuiteRun, counted, excused, find_suites, read_suites
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result

GOOD = """
[suite.nightly]
seed = 7
[[suite.nightly.run]]
name = "word_count"
faults = "each-step"
budget = "10m"
[[suite.nightly.run]]
name = "other"
expect = "at-least-once"
seed = 8
crashes = 2
[suite.nightly.quarantine]
other = { reason = "waits", until = 2026-12-31 }
"""


def suites(tmp_path: Path, text: str, name: str = "bettong.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_suite_of_its_own_file(tmp_path: Path) -> None:
    (suite,) = read_suites(suites(tmp_path, GOOD)).values()
    assert suite.runs == (
        SuiteRun("word_count", "each-step", budget="10m", seed=7),
        SuiteRun("other", expect="at-least-once", seed=8, crashes=2),
    )
    assert suite.quarantine["other"].holds(date(2026, 12, 31))
    assert not suite.quarantine["other"].holds(date(2027, 1, 1))


def test_the_nearest_file_above_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_suites(inner) == {}
    suites(tmp_path, GOOD.replace("[suite", "[tool.bettong.suite").replace(
        "[[suite", "[[tool.bettong.suite"), "pyproject.toml")  # fmt: skip
    assert list(find_suites(inner)) == ["nightly"]
    suites(tmp_path / "a", GOOD.replace("nightly", "nearer"))
    assert list(find_suites(inner)) == ["nearer"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("faults =", "fautls ="), "faults"),
        (('expect = "at-least-once"', 'expect = "atleast-once"'), "at-least-once"),
        (("seed = 8", 'seed = "8"'), "int is wanted"),
        (("crashes = 2", "crashes = true"), "int is wanted"),
        (('name = "other"', ""), "name is missing"),
        (('reason = "waits", ', ""), "a reason and an end"),
        (("until = 2026-12-31", 'until = "soon"'), "date is wanted"),
        (("other = {", "othre = {"), "other"),
        (("[suite.nightly]", "[suites.nightly]"), "suite"),
        (("seed = 7", "seed = "), "cannot read suites"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(UsageError, match=told):
        read_suites(suites(tmp_path, text))


@given(st.lists(st.integers()), st.integers(1, 9))
def test_shards_are_the_whole_once(items: list[int], of: int) -> None:
    parts = [Shard(i, of).part(items) for i in range(1, of + 1)]
    assert sorted(x for part in parts for x in part) == sorted(items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "/"])
def test_shards_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(UsageError, match="write I/N"):
        Shard.parse(text)


def test_quarantine_excuses_until_its_last_day(tmp_path: Path) -> None:
    (suite,) = read_suites(suites(tmp_path, GOOD)).values()
    bad = Result(scenario="other", verdict="invalid", reason="1 Loss")
    excuse = excused(bad, suite.quarantine, date(2026, 12, 31))
    assert excuse.verdict == "invalid"
    assert "in quarantine: waits, until 2026-12-31" in excuse.reason
    assert counted([excuse, Result(scenario="x", verdict="valid")])[0].scenario == "x"
    late = excused(bad, suite.quarantine, date(2027, 1, 1))
    assert counted([late]) == [late]
    assert "has ended" in late.reason
    other = Result(scenario="word_count", verdict="invalid")
    assert excused(other, suite.quarantine, date(2026, 1, 1)) is other


def test_a_labelled_part_is_joined_by_reports() -> None:
    result = Shard(2, 3).label(Result(scenario="s", verdict="valid"))
    assert result.details["shard"] == {"index": 2, "of": 3}
    assert Shard().label(result) is result
