"""What an oracle leaves open is as in the clean runs where batches are cut as in them: which of
the rows that come late count, and where the closing row does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness import Bag, Files, Job, OnePerKey, OuterBag, Table
from bettong.harness.queries.job.envelope import envelope
from bettong.harness.queries.job.expectation import Expectation, expectation
from bettong.harness.queries.job.facts import Facts
from bettong.harness.queries.job.judge import Judged, bag_of
from bettong.harness.queries.job.rules import Expected
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.run.job import Target

Row = dict[str, Any]
FAR = "2030-01-01T00:00:00Z"
BY_USER = [Bag("user", "n"), Table("user")]


def at(second: int) -> str:
    return f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


class Made(Job):
    """A job whose batch form is a function of lists."""

    name = "Made"
    oracle: Any = "batch"

    def __init__(self, inputs: Any, compare: Any) -> None:
        self.inputs, self.compare = inputs, compare

    def transform(self, env: Any) -> Any:
        raise NotImplementedError


def expected(
    job: Job, transform: Callable[..., list[Row]], facts: Facts, *clean: list[Row]
) -> Expectation:
    def ask(call: str, arguments: Mapping[str, Any]) -> Any:
        given = {
            name: [json.loads(line) for line in Path(path).read_text().splitlines()]
            for name, path in arguments["inputs"].items()
        }
        return transform(**given)

    found = envelope(job.compare, {str(n): rows for n, rows in enumerate(clean)})
    return expectation(job, JobWorkload(Target("made"), job, {}), facts, found, ask, clean)


def kinds(judged: Judged, seen: Sequence[Row]) -> list[str]:
    return sorted(a.kind for a in judged.difference(seen).anomalies)


def by_user(clicks: list[Row]) -> list[Row]:
    users = [row["user"] for row in clicks]
    return [{"user": user, "n": users.count(user)} for user in dict.fromkeys(users)]


def by_minute(clicks: list[Row]) -> list[Row]:
    groups = [(row["user"], row["at"][:16]) for row in clicks]
    return [{"user": u, "minute": m, "n": groups.count((u, m))} for u, m in dict.fromkeys(groups)]


def of(minute: int, n: int) -> Row:
    return {"user": "a", "minute": f"2024-01-01T00:{minute:02d}", "n": n}


def clicks(*times: int, closing: str | None = FAR) -> dict[str, Any]:
    rows = [{"user": "ab"[n % 2], "at": at(second)} for n, second in enumerate(times)]
    schema = "user STRING, at TIMESTAMP"
    return {"clicks": Files("json", rows, schema=schema, per_step=1, closing=closing)}


# --- the closing row


@pytest.mark.parametrize("compare", BY_USER)
def test_a_loss_is_not_made_up_for_by_the_closing_row(compare: Any) -> None:
    """Running counts: the closing row is one of b's, and counts in every run."""
    clean = by_user([{"user": user} for user in "ababb"])
    found = expected(Made(clicks(0, 1, 2, 3), compare), by_user, Facts({}, ("S",), 0, ()), clean)
    judged = found.judged.settled([clean])
    assert kinds(judged, clean) == []
    assert kinds(judged, [clean[0], {"user": "b", "n": 2}]) == ["Corrupt"]
    assert not found.by_cut


@pytest.mark.parametrize("compare", BY_USER)
def test_an_oracle_of_ones_own_does_not_let_the_closing_row_make_up_either(compare: Any) -> None:
    clean = by_user([{"user": user} for user in "ababb"])
    job = Made(clicks(0, 1, 2, 3), compare)
    job.oracle = lambda inputs: by_user(inputs["clicks"])
    found = expected(job, by_user, Facts({}, ("S",), 0, ()), clean)
    assert kinds(found.judged.settled([clean]), [clean[0], {"user": "b", "n": 2}]) == ["Corrupt"]


@pytest.mark.parametrize("compare", [Bag(), Table("at")])
def test_what_the_closing_row_becomes_in_every_clean_run_has_to_be_there(compare: Any) -> None:
    """It is a row of the last batch: who loses that batch, loses it."""
    given = clicks(0, 1)
    rows = [row for step in given["clicks"].steps for row in step]
    found = expected(Made(given, compare), lambda clicks: clicks, Facts({}, (), 0, ()), rows)
    judged = found.judged.settled([rows, rows])
    assert kinds(judged, rows) == []
    assert kinds(judged, rows[:-1]) == ["Loss"]
    assert kinds(judged, [*rows, rows[-1]]) == ["Duplicate"]


@pytest.mark.parametrize("compare", [Bag(), Table(("user", "minute"))])
def test_what_no_clean_run_makes_of_the_closing_row_may_not_be_there(compare: Any) -> None:
    """Its window stays open: a run that puts it out did so before it was closed."""
    clean = [{"user": user, "minute": at(0)[:16], "n": 1} for user in "ab"]
    job = Made(clicks(0, 1), compare)
    found = expected(job, by_minute, Facts({"at": (0.0,)}, ("StateStoreSave",), 0, ()), clean)
    judged = found.judged.settled([clean])
    assert kinds(judged, clean) == []
    early = {"user": "b", "minute": FAR[:16], "n": 1}
    assert kinds(judged, [*clean, early]) == ["Phantom"]


def left_outer(ads: list[Row], clicks: list[Row]) -> list[Row]:
    """Within an hour, without the time."""
    found = []
    for ad in ads:
        near = [c for c in clicks if c["clicked"] == ad["ad"] and c["at"][:13] == ad["shown"][:13]]
        found += [{"ad": ad["ad"], "clicked": c["clicked"]} for c in near] or [{"ad": ad["ad"]}]
    return found


def test_closing_rows_that_match_each_other_are_no_match_of_rows_that_look_like_them() -> None:
    """They are copies of the last rows, whose times may not be near each other."""
    shown = [{"ad": "x", "shown": at(0)}]
    later = [{"clicked": "x", "at": "2024-01-01T09:00:00Z"}]
    inputs = {
        "ads": Files("json", shown, schema="ad STRING, shown TIMESTAMP", closing=FAR),
        "clicks": Files("json", later, schema="clicked STRING, at TIMESTAMP", closing=FAR),
    }
    state = Facts({"at": (0.0,), "shown": (0.0,)}, ("StreamingSymmetricHashJoin",), 0, ())
    clean = [{"ad": "x"}, {"ad": "x", "clicked": "x"}]
    judged = expected(Made(inputs, OuterBag("ads")), left_outer, state, clean).judged
    judged = judged.settled([clean])
    assert kinds(judged, clean) == []
    assert "Loss" in kinds(judged, clean[1:])
    assert "Loss" in kinds(judged, clean[:1])


# --- rows that come late


@pytest.mark.parametrize("compare", [Bag(), Table(("user", "minute"))])
def test_a_late_row_that_counts_in_clean_runs_is_missed_where_batches_are_cut_alike(
    compare: Any,
) -> None:
    """All rows of the second batch come after the watermark and before their window's end: who
    loses the batch loses rows that every run without a fault has counted."""
    rows = [{"user": "a", "at": at(second)} for second in (30, 20, 100)]
    given = Files("json", rows, schema="user STRING, at TIMESTAMP", per_step=1, closing=FAR)
    state = Facts({"at": (0.0,)}, ("StateStoreSave",), 0, ())
    clean = [of(0, 2), of(1, 1)]
    found = expected(Made({"clicks": given}, compare), by_minute, state, clean)
    assert found.by_cut
    judged = found.judged.settled([clean])
    assert kinds(judged, clean) == []
    assert kinds(judged, [of(0, 1), of(1, 1)]) == ["Corrupt"]
    assert kinds(found.judged, [of(0, 1), of(1, 1)]) == []  # in batches that are cut otherwise


@pytest.mark.parametrize("compare", [Bag(), Table(("user", "minute"))])
def test_where_clean_runs_are_of_two_minds_both_are_right(compare: Any) -> None:
    times = (30, 20, 10, 100)
    rows = [{"user": "a", "at": at(second)} for second in times]
    given = Files("json", rows, schema="user STRING, at TIMESTAMP", per_step=1, closing=FAR)
    state = Facts({"at": (0.0,)}, ("StateStoreSave",), 1, ())
    runs = [[of(0, 3), of(1, 1)], [of(0, 2), of(1, 1)]]
    judged = expected(Made({"clicks": given}, compare), by_minute, state, *runs).judged
    judged = judged.settled(runs)
    for n, wrong in ((3, []), (2, []), (1, ["Corrupt"])):
        assert kinds(judged, [of(0, n), of(1, 1)]) == wrong


_ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=6)
_COMPARES: list[Any] = [Bag(), Bag(tolerance=0.5), Table(("user", "minute"))]


@given(_ROWS, _ROWS, st.data(), st.sampled_from(_COMPARES))
def test_only_what_a_clean_run_has_is_right_whichever_late_rows_it_counts(
    sure: list[tuple[str, int]], late: list[tuple[str, int]], data: st.DataObject, compare: Any
) -> None:
    def output(rows: list[tuple[str, int]]) -> list[Row]:
        return by_minute([{"user": user, "at": at(minute * 60)} for user, minute in rows])

    def some() -> list[Row]:
        take = data.draw(st.lists(st.booleans(), min_size=len(late), max_size=len(late)))
        return output([*sure, *(row for row, one in zip(late, take, strict=True) if one)])

    outputs = {"all": output([*sure, *late]), "without late rows": output(sure)}
    columns = ("user", "minute", "n")
    if isinstance(compare, Table):
        held = Expected(outputs["without late rows"], outputs["all"], between=True)
    else:
        held = bag_of(outputs, columns, between=True)
    loose = Judged(compare, held, None, columns)
    clean, seen = some(), some()
    judged = loose.settled([clean])
    if not kinds(loose, clean):
        assert kinds(judged, clean) == []

    def sorted_rows(rows: list[Row]) -> list[Any]:
        return sorted(tuple(row.values()) for row in rows)

    if sorted_rows(clean) != sorted_rows(seen) and not kinds(loose, clean):
        assert kinds(judged, seen) != []
    both = loose.settled([clean, seen])
    if not kinds(loose, clean) and not kinds(loose, seen):
        assert kinds(both, clean) == kinds(both, seen) == []


# --- one row of each key


def orders(*times: int) -> dict[str, Any]:
    rows = [{"id": "xy"[n % 2], "at": at(second)} for n, second in enumerate(times)]
    return {"orders": Files("json", rows, schema="id STRING, at TIMESTAMP", per_step=1)}


def deduplicated(operator: str, given: dict[str, Any], *runs: list[Row]) -> Judged:
    job = Made(given, Bag("id"))
    job.oracle = OnePerKey("id")
    return expected(job, by_user, Facts({"at": (10.0,)}, (operator,), 0, ()), *runs).judged


def test_a_key_whose_late_rows_count_in_clean_runs_is_missed() -> None:
    """y comes after the watermark, in a batch before which nothing had moved it yet."""
    x, y = {"id": "x"}, {"id": "y"}
    loose = deduplicated("StreamingDeduplicate", orders(60, 20), [x, y])
    assert kinds(loose, [x]) == []
    judged = loose.settled([[x, y]])
    assert kinds(judged, [x, y]) == []
    assert kinds(judged, [x]) == ["Loss"]
    assert kinds(loose.settled([[x, y], [x]]), [x]) == []


def test_rows_beyond_the_delay_are_as_many_as_in_clean_runs() -> None:
    x, y = {"id": "x"}, {"id": "y"}
    operator, given = "StreamingDeduplicateWithinWatermark", orders(0, 1, 60, 61)
    both = deduplicated(operator, given, [x, y, x, y])
    assert kinds(both, [x, y]) == []
    judged = both.settled([[x, y, x, y]])
    assert kinds(judged, [x, y, x, y]) == []
    assert kinds(judged, [x, y, x]) == ["Loss"]
    assert kinds(judged.fed_again(), [x, y, x]) == ["Loss"]
    one = both.settled([[x, y, x], [x, y]])
    assert kinds(one, [x, y]) == kinds(one, [x, y, x]) == []
    assert kinds(one, [x, y, x, y]) == ["Duplicate"]
