"""What the batch form of a job, or the user's own function, says is right: rows that may be
dropped, groups that are not closed, what nobody can tell."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness import Bag, Files, Job, OnePerKey, OuterBag, Table
from bettong.harness.queries.job import host
from bettong.harness.queries.job.envelope import envelope
from bettong.harness.queries.job.expectation import Expectation, expectation
from bettong.harness.queries.job.facts import Facts, seconds
from bettong.harness.queries.job.judge import bag_of
from bettong.harness.queries.job.late_rows import may_be_dropped
from bettong.harness.queries.job.rules import bag_difference
from bettong.harness.queries.job.workload import JobWorkload
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.sense import VacuousError
from bettong.lineage.errors import UsageError

Row = dict[str, Any]
Transform = Callable[..., list[Row]]
FAR = "2030-01-01T00:00:00Z"
MINUTE = 60.0


def at(second: int) -> str:
    return f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def clicks(*times: int, closing: str | None = FAR, per_step: int = 1) -> Files:
    rows = [{"user": "a", "at": at(second)} for second in times]
    schema = "user STRING, at TIMESTAMP"
    return Files("json", rows, schema=schema, per_step=per_step, closing=closing)


def counted(clicks: list[Row]) -> list[Row]:
    """By user and minute."""
    groups = [(row["user"], row["at"][:16]) for row in clicks]
    return [{"user": u, "minute": m, "n": groups.count((u, m))} for u, m in dict.fromkeys(groups)]


class Made(Job):
    """A job whose batch form is a function of lists."""

    name = "Made"
    oracle: Any = "batch"

    def __init__(self, inputs: Any, compare: Any = Bag(), **more: Any) -> None:  # noqa: B008
        self.inputs, self.compare = inputs, compare
        for name, value in more.items():
            setattr(self, name, value)

    def transform(self, env: Any) -> Any:
        raise NotImplementedError


def expected(
    job: Job, transform: Transform | None, facts: Facts, clean: Sequence[Row]
) -> Expectation:
    def ask(call: str, arguments: Mapping[str, Any]) -> Any:
        assert transform is not None
        given = {
            name: [json.loads(line) for line in Path(path).read_text().splitlines()]
            for name, path in arguments["inputs"].items()
        }
        return transform(**given)

    found = envelope(job.compare, {"plain": clean})
    return expectation(job, JobWorkload(Target("made"), job, {}), facts, found, ask, [clean])


def facts(*stateful: str, dropped: int = 0, **delays: float | tuple[float, ...]) -> Facts:
    marks = {n: d if isinstance(d, tuple) else (d,) for n, d in delays.items()}
    return Facts(marks, stateful, dropped, ())


def kinds(expectation: Expectation, seen: Sequence[Row]) -> list[str]:
    return sorted(a.kind for a in expectation.judged.difference(seen).anomalies)


def of(minute: int, n: int) -> Row:
    return {"user": "a", "minute": f"2024-01-01T00:{minute:02d}", "n": n}


AGGREGATION = facts("StateStoreSave", at=0.0)


# --- how its rows are read


class Reader:
    """Of Spark's, what it is told."""

    def __init__(self, told: tuple[Any, ...] = ()) -> None:
        self.told = told

    def schema(self, schema: str) -> Reader:
        return Reader((*self.told, schema))

    def format(self, format: str) -> Reader:
        return Reader((*self.told, format))

    def options(self, **options: str) -> Reader:
        return Reader((*self.told, options))

    def load(self, path: str) -> Any:
        told = [{"told": str(part)} for part in (*self.told, Path(path).read_text())]
        return Mock(collect=lambda: told)


def test_the_batch_form_reads_an_input_as_the_stream_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the options of its reader, in its format, whatever it is called."""
    options = {"timestampFormat": "dd/MM/yyyy"}
    rows = [{"at": "31/12/2024"}]
    job = Made({"_a/b": Files("csv", rows, options, schema="at TIMESTAMP")})
    job.transform = lambda env: env.input("_a/b")  # type: ignore[method-assign]
    monkeypatch.setattr(host, "_job", lambda target: job)
    asked = []

    def ask(call: str, arguments: Mapping[str, Any]) -> Any:
        assert not Path(arguments["inputs"]["_a/b"]).name.startswith(("_", "."))
        found = host.batch(Mock(read=Reader()), **arguments)
        asked.extend(row["told"] for row in found)
        return [{"at": "2024-12-31"}]

    clean = envelope(job.compare, {"plain": [{"at": "2024-12-31"}]})
    workload = JobWorkload(Target("made"), job, {})
    expectation(job, workload, facts(), clean, ask, [[{"at": "2024-12-31"}]])
    read_by = ["at TIMESTAMP", "csv", str({"header": "true", **options})]
    assert asked[:4] == [*read_by, "at\n31/12/2024\n"]


# --- rows that may count


def test_a_group_with_rows_that_may_count_is_there_once_and_lies_between() -> None:
    """The row at 20 comes when the watermark is at 30, and counts, for its minute is open; the one
    at 10 comes when its minute is out."""
    given = {"clicks": clicks(30, 20, 100, 10)}
    found = expected(Made(given), counted, AGGREGATION, [of(0, 2), of(1, 1)])
    for n, wrong in ((1, []), (2, []), (3, []), (4, ["Corrupt"])):
        assert kinds(found, [of(0, n), of(1, 1)]) == wrong
    assert kinds(found, [of(1, 1)]) == ["Loss"]
    assert kinds(found, [of(0, 1), of(0, 2), of(1, 1)]) == ["Duplicate"]
    assert kinds(found, [of(0, 2), of(0, 2), of(1, 1)]) == ["Duplicate"]


def test_a_group_of_rows_that_may_all_be_dropped_may_count_some() -> None:
    """Both rows of the first minute are late; the first one counts, for the minute is open."""
    given = {"clicks": clicks(61, 20, 10)}
    state = facts("StateStoreSave", at=0.0)
    for compare in (Bag(), Table(("user", "minute"))):
        found = expected(Made(given, compare), counted, state, [of(0, 1), of(1, 1)])
        assert kinds(found, [of(1, 1)]) == []
        assert kinds(found, [of(0, 1), of(1, 1)]) == []
        assert kinds(found, [of(0, 3), of(1, 1)]) != []
        assert kinds(found, [of(0, 2), of(0, 2), of(1, 1)]) == ["Duplicate"]
        assert kinds(found, [of(0, 1), of(0, 2), of(1, 1)]) == ["Duplicate"]
        assert kinds(found, [of(0, 1)]) == ["Loss"]


def test_of_a_few_late_rows_each_choice_is_made() -> None:
    """A mean lies between nothing."""
    values = [(61, 50), (30, 50), (20, 0), (10, 100)]
    rows = [{"at": at(second), "v": v} for second, v in values]

    def mean(clicks: list[Row]) -> list[Row]:
        minutes: dict[str, list[int]] = {}
        for row in clicks:
            minutes.setdefault(row["at"][:16], []).append(row["v"])
        return [{"minute": m, "mean": sum(vs) / len(vs)} for m, vs in minutes.items()]

    first = {"at": at(29), "v": 50}
    sure = Files("json", [first, *rows], schema="at TIMESTAMP, v INT", per_step=1, closing=FAR)
    for compare in (Bag(), Table("minute")):
        job = Made({"clicks": sure}, compare)
        clean = [{"minute": "2024-01-01T00:01", "mean": 50.0}]
        found = expected(job, mean, AGGREGATION, [*clean, {"minute": at(0)[:16], "mean": 50.0}])
        for value, wrong in ((50.0, []), (25.0, []), (75.0, []), (60.0, ["Corrupt"])):
            seen = [*clean, {"minute": at(0)[:16], "mean": value}]
            assert kinds(found, seen) == wrong


_ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=6)


@given(_ROWS, _ROWS, st.data())
def test_whichever_late_rows_count_is_right_and_every_sure_group_is_missed(
    sure: list[tuple[str, int]], late: list[tuple[str, int]], data: st.DataObject
) -> None:
    def output(rows: list[tuple[str, int]]) -> list[Row]:
        return counted([{"user": user, "at": at(minute * 60)} for user, minute in rows])

    outputs = {"all": output([*sure, *late]), "without late rows": output(sure)}
    held = bag_of(outputs, ["user", "minute", "n"], between=True)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(late), max_size=len(late)))
    seen = output([*sure, *(row for row, take in zip(late, chosen, strict=True) if take)])
    columns = ["user", "minute", "n"]
    assert bag_difference(held, seen, columns).anomalies == []
    groups = {(row["user"], row["minute"]) for row in outputs["without late rows"]}
    for row in seen:
        lost = bag_difference(held, [one for one in seen if one is not row], columns)
        assert bool(lost.anomalies) == ((row["user"], row["minute"]) in groups)
        twice = bag_difference(held, [*seen, row], columns)
        assert [a.kind for a in twice.anomalies] == ["Duplicate"]


def test_times_that_cannot_be_read_are_one_clear_error() -> None:
    rows = [{"user": "a", "at": 1704067200}, {"user": "a", "at": 1704067100}]
    schema = "user STRING, at TIMESTAMP"
    numbers = Made({"clicks": Files("json", rows, schema=schema, per_step=1)})
    assert may_be_dropped(numbers, AGGREGATION) == {"clicks": {(1, 0)}}
    rows[1]["at"] = "noon"
    texts = Made({"clicks": Files("json", rows, schema=schema, per_step=1)})
    with pytest.raises(UsageError, match="event time 'noon'"):
        may_be_dropped(texts, AGGREGATION)


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_times_that_a_job_makes_of_numbers_are_of_their_unit(unit: int) -> None:
    """Three seconds out of order are within the delay of ten."""
    begin = 1_704_067_200
    rows = [{"id": "x", "at": (begin + second) * unit} for second in (30, 27, 15)]
    given = Files("json", rows, schema="id STRING, at BIGINT", per_step=1)
    job = Made({"orders": given}, Bag("id"), oracle=OnePerKey("id"))
    assert may_be_dropped(job, facts("StateStoreSave", at=10.0)) == {"orders": {(2, 0)}}
    within = facts("StreamingDeduplicateWithinWatermark", at=20.0)
    found = expected(job, None, within, [{"id": "x"}])
    assert kinds(found, [{"id": "x"}, {"id": "x"}]) == ["Duplicate"]


def test_a_query_without_state_drops_no_row() -> None:
    given = {"clicks": clicks(30, 20, 100, 10)}

    def same(clicks: list[Row]) -> list[Row]:
        return clicks

    rows = same(given["clicks"].rows)
    found = expected(Made(given), same, facts(at=0.0), rows)
    assert kinds(found, rows) == []
    assert kinds(found, rows[:1] + rows[2:]) == ["Loss"]


def joined(ads: list[Row], clicks: list[Row]) -> list[Row]:
    """Left outer."""
    found = []
    for ad in ads:
        matches = [click["at"] for click in clicks if click["clicked"] == ad["ad"]]
        found += [{"ad": ad["ad"], "at": time} for time in matches or [None]]
    return found


def test_a_row_whose_matches_may_be_dropped_is_there_with_them_or_without() -> None:
    ads = Files(
        "json",
        [{"ad": "x", "shown": at(0)}, {"ad": "y", "shown": at(100)}],
        schema="ad STRING, shown TIMESTAMP",
        closing={"ad": "last", "shown": FAR},
        per_step=1,
    )
    times = [("y", 101), ("z", 100), ("x", 1), ("x", 2)]
    given = Files(
        "json",
        [{"clicked": ad, "at": at(time)} for ad, time in times],
        schema="clicked STRING, at TIMESTAMP",
        closing={"clicked": "none", "at": FAR},
        per_step=1,
    )
    job = Made({"ads": ads, "clicks": given}, OuterBag("ads"))
    y, alone = {"ad": "y", "at": at(101)}, {"ad": "x", "at": None}
    one, two = {"ad": "x", "at": at(1)}, {"ad": "x", "at": at(2)}
    state = facts("StreamingSymmetricHashJoin", at=0.0, shown=0.0)
    found = expected(job, joined, state, [one, y])
    for rows in ([alone], [one], [one, two]):
        assert kinds(found, [*rows, y]) == []
    assert kinds(found, [y]) == ["Loss"]
    assert "Phantom" in kinds(found, [alone, one, y])


def test_inputs_whose_times_are_called_alike_have_delays_of_their_own() -> None:
    """A plan names columns, not inputs: where it matters which delay is whose, nobody can tell."""

    def both(a: list[Row], b: list[Row]) -> list[Row]:
        return counted([*a, *b])

    state = facts("StateStoreSave", at=(0.0, MINUTE))
    in_order = Made({"a": clicks(10, 90), "b": clicks(20, 90)})
    found = expected(in_order, both, state, [of(0, 2), of(1, 2)])
    assert kinds(found, [of(0, 2), of(1, 2)]) == []
    late = Made({"a": clicks(50, 10), "b": clicks(50, 10)})
    with pytest.raises(VacuousError, match="delays"):
        expected(late, both, state, [of(0, 2)])


def test_a_watermark_goes_by_the_input_that_it_is_over() -> None:
    """Names have an `at` too, of long ago, and no watermark."""
    names = [{"name": "a", "at": at(0)} for _ in range(4)]
    others = Files("json", names, schema="name STRING, at TIMESTAMP", per_step=1)
    job = Made({"clicks": clicks(30, 20, 100, 10), "names": others})
    state = facts("StateStoreSave", at=0.0, dropped=2)
    told = replace(state, unmarked=frozenset({"names"}))
    assert may_be_dropped(job, told) == {"clicks": {(1, 0), (3, 0)}, "names": set()}


def test_inputs_under_one_watermark_move_it_together_and_are_closed_together() -> None:
    """A union: what one of them is fed late for the other is late. The closing row of the shorter
    one comes when the other one has been fed, or all of that would be."""
    job = Made({"a": clicks(100, 110, 120), "b": clicks(10)})
    state = facts("StateStoreSave", at=60.0)
    of_both = replace(state, together=frozenset({frozenset("ab")}))
    assert may_be_dropped(job, of_both) == {"a": set(), "b": set()}
    job = Made({"a": clicks(100, 110), "b": clicks(90, 10)})
    assert may_be_dropped(job, state) == {"a": set(), "b": {(1, 0)}}
    job = Made({"a": clicks(100, 110), "b": clicks(20, 30)})
    assert may_be_dropped(job, state) == {"a": set(), "b": set()}
    assert may_be_dropped(job, of_both) == {"a": set(), "b": {(1, 0)}}


def test_the_policy_of_the_greatest_watermark_is_known() -> None:
    def both(a: list[Row], b: list[Row]) -> list[Row]:
        return counted([*a, *b])

    given = {"a": clicks(200, 210), "b": clicks(10, 20)}
    rows = [of(3, 2), of(0, 1)]
    job = Made(given, spark_config={"spark.sql.streaming.multipleWatermarkPolicy": "max"})
    assert kinds(expected(job, both, AGGREGATION, rows), rows) == []
    least = expected(Made(given), both, AGGREGATION, [of(3, 2), of(0, 2)])
    assert kinds(least, rows) == ["Corrupt"]


def test_rows_that_are_dropped_by_a_time_that_no_input_has_cannot_be_told() -> None:
    """The event time is a column that the job makes."""
    given = {"clicks": clicks(30, 20, 100, 10)}
    with pytest.raises(VacuousError, match="2 row"):
        expected(Made(given), counted, facts("StateStoreSave", dropped=2, made=0.0), [of(0, 1)])


@pytest.mark.parametrize(("name", "kind"), [("at", "STRING"), ("time", "TIMESTAMP")])
def test_where_no_row_is_dropped_and_nobody_can_tell_which_would_be_each_counts(
    name: str, kind: str
) -> None:
    """The times of one input are texts that the job reads its own way, or called otherwise there:
    the watermark of the other one alone would come too soon."""
    rows = [{"user": "b", name: "01/01/2024 00:10" if kind == "STRING" else at(0)}] * 2
    others = Files("json", rows, schema=f"user STRING, {name} {kind}", per_step=1)
    job = Made({"a": clicks(30, 20), "b": others})
    state = facts("StateStoreSave", at=0.0) if name == "at" else facts("State", at=0.0, seen=0.0)
    assert may_be_dropped(job, state) == {"a": set(), "b": set()}
    with pytest.raises(VacuousError, match="do not tell which"):
        may_be_dropped(job, replace(state, dropped=1))


@pytest.mark.parametrize(
    ("delay", "long"),
    [("2 months", 62 * 86400), ("1 years", 372 * 86400), ("1 days 0.5 seconds", 86400.5)],
)
def test_long_delays_are_read_as_spark_counts_them(delay: str, long: float) -> None:
    assert seconds(delay) == long


# --- groups that nothing closes


@pytest.mark.parametrize("oracle", ["batch", counted])
def test_without_a_closing_row_what_is_missing_may_be_open(oracle: Any) -> None:
    given = {"clicks": clicks(30, 100, closing=None)}
    own = oracle if oracle == "batch" else lambda inputs: counted(**inputs)
    with pytest.raises(VacuousError, match=r"clicks.*closing="):
        expected(Made(given, oracle=own), counted, AGGREGATION, [of(0, 1)])
    updated = expected(Made(given, oracle=own), counted, AGGREGATION, [of(0, 1), of(1, 1)])
    assert kinds(updated, [of(0, 1)]) == ["Loss"]


# --- columns


def test_a_column_that_is_null_in_all_rows_of_the_stream_is_held_against_the_batch() -> None:
    """JSON leaves nulls out: no row that was read has the column."""
    given = {"clicks": clicks(30)}

    def matched(clicks: list[Row]) -> list[Row]:
        return [{"user": "a", "match": 7}]

    found = expected(Made(given), matched, facts(), [{"user": "a"}])
    assert kinds(found, [{"user": "a"}]) == ["Corrupt"]


def test_a_column_that_the_batch_form_does_not_make_is_named() -> None:
    job = Made({"clicks": clicks(30)}, Bag("user", "times"))
    with pytest.raises(UsageError, match=r"times.*batch form"):
        expected(job, counted, AGGREGATION, [{"user": "a", "times": 1}])


def test_an_outer_join_shows_columns_of_its_left_side() -> None:
    job = Made({"clicks": clicks(30)}, OuterBag("clicks"))
    with pytest.raises(UsageError, match=r"OuterBag\(left='clicks'\).*user, at"):
        expected(job, counted, AGGREGATION, [{"name": "a", "n": 1}])


# --- the user's own function


def own(function: Any, compare: Any = Bag(), clean: Sequence[Row] = ({"id": "x"},)) -> Expectation:  # noqa: B008
    given = Files("json", [{"id": "x"}], schema="id STRING")
    return expected(Made({"orders": given}, compare, oracle=function), None, facts(), clean)


def _fails(inputs: Any) -> Any:
    return inputs["ordres"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda inputs: None, "NoneType"),
        (lambda inputs: {"id": "x"}, "dict"),
        (lambda inputs: "x", "str"),
        (lambda inputs: ["x"], "a row that is str"),
        (_fails, "KeyError: 'ordres'"),
        (lambda self, inputs: [], "TypeError"),
    ],
)
def test_an_oracle_that_gives_no_rows_is_one_clear_error(function: Any, said: str) -> None:
    with pytest.raises(UsageError, match=f"Made: its oracle.*{said}"):
        own(function)


def _orders(inputs: Any) -> Any:
    return inputs["orders"]


class OfAClass(Made):
    oracle = _orders


class OfAMethod(Made):
    def oracle(self, inputs: Any) -> Any:  # type: ignore[override]
        return inputs[next(iter(self.inputs))]


def test_what_comes_from_the_closing_row_is_right_for_an_oracle_too() -> None:
    given = {"clicks": clicks(30, 100)}
    job = Made(given, oracle=lambda inputs: counted(**inputs))
    closing = {"user": "a", "minute": "2030-01-01T00:00", "n": 1}
    sure = [of(0, 1), of(1, 1)]
    found = expected(job, None, AGGREGATION, sure)
    assert kinds(found, sure) == kinds(found, [*sure, closing]) == []
    assert kinds(found, [*sure, closing, closing]) == ["Duplicate"]
    table = Made(given, Table(("user", "minute")), oracle=job.oracle)
    assert kinds(expected(table, None, AGGREGATION, sure), [*sure, closing]) == []


@pytest.mark.parametrize("kind", [OfAClass, OfAMethod])
def test_an_oracle_is_a_function_or_a_method(kind: type[Made]) -> None:
    rows = [{"id": "x"}]
    job = kind({"orders": Files("json", rows, schema="id STRING")})
    assert kinds(expected(job, None, facts(), rows), rows) == []


def test_an_oracle_gives_one_row_of_each_key_of_a_table() -> None:
    with pytest.raises(UsageError, match=r"Made: its oracle.*id=x"):
        own(lambda inputs: [{"id": "x", "n": 1}, {"id": "x", "n": 2}], Table("id"))


def test_an_oracle_makes_the_columns_that_are_compared() -> None:
    with pytest.raises(UsageError, match=r"n.*oracle"):
        own(lambda inputs: [{"id": "x", "m": 1}], Bag("id", "n"), [{"id": "x", "n": 1}])


def test_an_oracle_gives_values_of_python() -> None:
    made = {
        "id": "x",
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "day": date(2024, 1, 1),
        "price": Decimal("1.50"),
        "raw": b"\x01",
        "parts": ({"n": Decimal(1)},),
        "odd": float("nan"),
    }
    read = {
        "id": "x",
        "at": "2024-01-01T00:00:00.000Z",
        "day": "2024-01-01",
        "price": 1.5,
        "raw": b"\x01".hex(),
        "parts": [{"n": 1}],
        "odd": "nan",
    }
    found = own(lambda inputs: [made], clean=[read])
    assert kinds(found, [read]) == []
    assert kinds(found, [{**read, "price": 1.51}]) == ["Corrupt"]


# --- one row of each key


def test_a_key_whose_rows_are_late_may_be_missing() -> None:
    rows = [{"id": "x", "at": at(100)}, {"id": "y", "at": at(10)}, {"id": "z", "at": at(110)}]
    given = Files("json", rows, schema="id STRING, at TIMESTAMP", per_step=1)
    job = Made({"orders": given}, Bag("id"), oracle=OnePerKey("id"), transform=None)
    state = facts("StreamingDeduplicate", dropped=1, at=0.0)
    found = expected(job, None, state, [{"id": "x"}, {"id": "z"}])
    assert kinds(found, [{"id": "x"}, {"id": "z"}]) == []
    assert kinds(found, [{"id": "x"}]) == ["Loss"]


def test_beyond_the_delay_doubles_may_both_be_there() -> None:
    rows = [{"id": "x", "at": at(second)} for second in (0, 10, 100)]
    given = Files("json", rows, schema="id STRING, at TIMESTAMP", per_step=1)
    job = Made({"orders": given}, Bag("id"), oracle=OnePerKey("id"))
    x = {"id": "x"}
    for operator, most in (("StreamingDeduplicateWithinWatermark", 2), ("StreamingDeduplicate", 1)):
        found = expected(job, None, facts(operator, at=MINUTE), [x] * most)
        assert kinds(found, [x]) == []
        assert kinds(found, [x, x]) == ([] if most == 2 else ["Duplicate"])
        assert kinds(found, [x, x, x]) == ["Duplicate"]


@pytest.mark.parametrize("coded", [True, False])
def test_bytes_that_are_fed_as_base64_are_the_same_as_digits(coded: bool) -> None:
    fed = [{"id": "x", "raw": "AQID"}, {"id": "y", "raw": "BAUG"}]
    digits = [{"id": "x", "raw": "010203"}, {"id": "y", "raw": "040506"}]
    seen = fed if coded else digits
    given = Files("json", fed, schema="id STRING, raw BINARY")
    job = Made({"orders": given}, Bag(), oracle=OnePerKey("id"))
    found = expected(job, None, facts(), seen)
    assert kinds(found, seen) == []
    assert kinds(found, [{**seen[0], "raw": seen[1]["raw"]}, seen[1]]) == ["Corrupt"]
    by_bytes = Made({"orders": given}, Bag(), oracle=OnePerKey("raw"))
    assert kinds(expected(by_bytes, None, facts(), seen), [*seen, seen[0]]) == ["Duplicate"]


def test_what_transform_makes_of_bytes_is_known_whichever_way_it_is_written() -> None:
    given = Files(
        "json",
        [{"id": "x", "raw": "AQID"}, {"id": "x", "raw": "BAUG"}],
        schema="id STRING, raw BINARY",
    )
    job = Made({"orders": given}, Bag(), oracle=OnePerKey("id"))

    def transform(orders: list[Row]) -> list[Row]:
        made = (base64.b64decode(row["raw"]) for row in orders)
        return [host.typed({"id": "x", "raw": raw, "twice": raw + raw}) for raw in made]

    seen = [{"id": "x", "raw": "AQID", "twice": "AQIDAQID"}]
    found = expected(job, transform, facts(), seen)
    assert kinds(found, seen) == []
    assert kinds(found, [{"id": "x", "raw": "BAUG", "twice": "BAUGBAUG"}]) == []
    assert kinds(found, [{"id": "x", "raw": "BAUG", "twice": "AQIDAQID"}]) == ["Corrupt"]


def test_an_output_has_the_key_that_its_rows_are_known_by() -> None:
    given = Files("json", [{"id": "x"}], schema="id STRING")
    named = Made({"orders": given}, Bag("n"), oracle=OnePerKey("id"))
    made = [{"id": "x", "n": 1}]
    assert kinds(expected(named, lambda orders: made, facts(), made), []) == ["Loss"]
    job = Made({"orders": given}, Bag(), oracle=OnePerKey("id"))
    with pytest.raises(UsageError, match=r"OnePerKey.*'id'"):
        expected(job, None, facts(), [{"order": "x"}])
