"""Bytes and the keys of maps, which places write in several ways: the same value is no anomaly, and
another one is, whatever it looks like."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.job.host import plain, typed
from bettong.harness.queries.job.rules import Expected, bag_difference
from bettong.harness.queries.job.values import canonical
from bettong.harness.queries.job.written import written
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

Row = dict[str, Any]

BINARY = st.binary(min_size=1, max_size=8)
NOTATIONS: dict[str, Callable[[bytes], str]] = {
    "digits": bytes.hex,
    "capitals": lambda value: value.hex().upper(),
    "base64": lambda value: base64.b64encode(value).decode(),
    "marked": lambda value: f"\\x{value.hex()}",
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kinds(right: Sequence[Row], clean: Sequence[Row], seen: Sequence[Row]) -> list[str]:
    """What is wrong with an output, given what a run without a fault has written."""
    again = json.loads(json.dumps([typed(row) for row in right]))
    outputs, how = written({"all": again}, [clean])
    columns = sorted({name for row in outputs["all"] for name in row})
    found = bag_difference(Expected(outputs["all"]), how.rows(seen), columns)
    return sorted(a.kind for a in found.anomalies)


# --- bytes


@given(st.lists(BINARY, min_size=1, max_size=4), st.sampled_from(sorted(NOTATIONS)), st.data())
def test_bytes_are_the_same_in_every_notation_and_others_are_not(
    values: list[bytes], name: str, data: st.DataObject
) -> None:
    write = NOTATIONS[name]

    def rows(each: Callable[[bytes], Any], values: list[bytes]) -> list[Row]:
        return [{"id": n, "raw": each(v), "in": {"of": [each(v)]}} for n, v in enumerate(values)]

    right, clean = rows(bytes, values), rows(write, values)
    assert kinds(right, clean, clean) == []
    other = data.draw(BINARY.filter(lambda value: value != values[0]))
    changed = rows(write, [other, *values[1:]])
    assert kinds(right, clean, changed) == ["Loss", "Phantom"]


@given(BINARY)
def test_what_reads_as_the_right_bytes_in_another_notation_only_is_not_right(value: bytes) -> None:
    """Where a run without a fault has base64, digits are base64 too, of other bytes."""
    right = [{"raw": value * 4}]
    clean = [{"raw": base64.b64encode(value * 4).decode()}]
    assert kinds(right, clean, [{"raw": (value * 4).hex()}]) == ["Loss", "Phantom"]


@given(BINARY)
def test_a_text_is_not_taken_for_bytes(value: bytes) -> None:
    """It may hold digits, or base64: it is right as it is only."""
    digits, coded = value.hex(), base64.b64encode(value).decode()
    for right, wrong in ((digits, coded), (coded, digits), (f"a{digits}", f"A{digits}")):
        if right != wrong:
            assert kinds([{"of": right}], [{"of": wrong}], [{"of": wrong}]) == ["Loss", "Phantom"]
    mixed = [{"of": value}, {"of": f"{digits}x"}]
    seen = [{"of": coded}, {"of": f"{digits}x"}]
    assert kinds(mixed, seen, seen) == ["Loss", "Phantom"]


def test_a_null_among_bytes_stays_one() -> None:
    right: list[Row] = [{"raw": None}, {"raw": b"\x01\x02"}]
    seen: list[Row] = [{"raw": None}, {"raw": "AQI="}]
    assert kinds(right, seen, seen) == []
    assert kinds(right, seen, [seen[1], seen[1]]) == ["Duplicate", "Loss"]


# --- keys of maps


@given(st.dates(), st.dates())
def test_a_date_is_the_same_key_as_a_number_of_days(day: date, other: date) -> None:
    """As Spark's JSON has it."""
    right = [{"of": {day: 1}}]
    for write in (str, lambda value: str((value - EPOCH.date()).days)):
        assert kinds(right, [], [{"of": {write(day): 1}}]) == []
        assert (kinds(right, [], [{"of": {write(other): 1}}]) == []) == (day == other)


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-2, 2))
def test_a_time_is_the_same_key_as_a_number_of_microseconds(at: datetime, more: int) -> None:
    right = [{"of": {at: {"n": 1}}}]
    there = at.replace(tzinfo=UTC) + timedelta(microseconds=more)
    long = (there - EPOCH) // timedelta(microseconds=1)
    for text in (str(there), there.isoformat(), str(there.replace(tzinfo=None)), str(long)):
        assert (kinds(right, [], [{"of": {text: {"n": 1}}}]) == []) == (more == 0)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4), st.integers(-1, 1))
def test_a_decimal_is_the_same_key_with_any_number_of_zeros(value: Decimal, more: int) -> None:
    if value.adjusted() > 20:
        return
    for text in (f"{value + more:f}", f"{value + more:f}00", str((value + more).normalize())):
        assert (kinds([{"of": {value: 1}}], [], [{"of": {text: 1}}]) == []) == (more == 0)


@given(st.integers(), st.integers())
def test_numbers_are_keys_by_their_value(value: int, other: int) -> None:
    for text in (str(other), f"{other}.0"):
        assert (kinds([{"of": {value: 1}}], [], [{"of": {text: 1}}]) == []) == (value == other)


@given(st.floats(width=32) | st.floats(), st.floats(width=32) | st.floats())
def test_a_float_is_the_same_key_as_it_is_written(value: float, other: float) -> None:
    for one in (value, other):
        same = kinds([{"of": {value: 1}}], [], [{"of": {as_java_writes_it(one): 1}}]) == []
        assert same == (canonical(one) == canonical(value))
    assert kinds([{"of": {0.10000000149011612: 1}}], [], [{"of": {"0.1": 1}}]) == []


def as_java_writes_it(value: float) -> str:
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return names.get(str(value), repr(value).replace("e+", "E").replace("e", "E"))


@given(st.dictionaries(st.text("0123456789.-", max_size=10), st.integers(), max_size=3))
def test_keys_that_are_texts_are_right_as_they_are_only(of: dict[str, int]) -> None:
    assert kinds([{"of": of}], [{"of": of}], [{"of": of}]) == []
    for key in of:
        other = {**{k: v for k, v in of.items() if k != key}, f"{key}.0": of[key]}
        if f"{key}.0" not in of:
            assert kinds([{"of": of}], [], [{"of": other}]) != []


def test_keys_that_would_be_one_are_both_kept() -> None:
    """Else one of two entries would make up for a wrong one."""
    assert kinds([{"of": {1: "a"}}], [], [{"of": {"1.0": "b", "1": "a"}}]) != []
    assert (
        kinds([{"of": {date(1970, 1, 2): "a"}}], [], [{"of": {"1": "b", "1970-01-02": "a"}}]) != []
    )


def test_a_map_of_nothing_says_nothing_of_the_keys_of_others() -> None:
    right: list[Row] = [{"of": {}}, {"of": {date(2024, 1, 1): 1}}, {"of": None}]
    seen: list[Row] = [{"of": {}}, {"of": {"19723": 1}}, {}]
    assert kinds(right, seen, seen) == []
    assert kinds(right, seen, [{"of": {"19723": 1}}, *seen[1:]]) == ["Duplicate", "Loss"]


def test_what_has_keys_of_several_kinds_is_right_as_it_is() -> None:
    right: list[Row] = [{"of": {1.5: "a", "b": 1}}, {"of": {"1.50": 1}}, {"of": {2.0: 1}}]
    seen: list[Row] = [{"of": {"1.5": "a", "b": 1}}, {"of": {"1.50": 1}}, {"of": {"2.0": 1}}]
    assert kinds(right, seen, seen) == []
    assert kinds(right, seen, [*seen[:1], {"of": {"1.5": 1}}, *seen[2:]]) == ["Loss", "Phantom"]
    numbers = [{"of": {1: 1}}, {"of": {2.5: 1}}, {"of": {3.0: 1}}]
    for text in ("3.0", "3"):
        written_as = [{"of": {"1.0": 1}}, {"of": {"2.5": 1}}, {"of": {text: 1}}]
        assert kinds(numbers, written_as, written_as) == []


def test_bytes_within_a_map_and_maps_within_lists_are_read_too() -> None:
    right = [{"of": [{date(2024, 1, 1): b"\x01\x02"}]}]
    seen = [{"of": [{"19723": "AQI="}]}]
    assert kinds(right, seen, seen) == []
    assert kinds(right, seen, [{"of": [{"19723": "AQM="}]}]) == ["Loss", "Phantom"]


@given(st.dictionaries(st.integers() | st.dates() | st.text(max_size=3), BINARY, max_size=3))
def test_typed_values_without_their_types_are_the_plain_ones(of: dict[Any, bytes]) -> None:
    """Keys of one kind may be written in another way."""
    if len({type(key) for key in of}) > 1 or not any(isinstance(key, int) for key in of):
        outputs, _ = written({"all": [typed({"of": of})]}, [])
        assert outputs["all"] == [plain({"of": of})]


# --- on Spark

JOB = """
import json

from bettong.harness import Bag, Files, Job

class AsLines(Job):
    inputs = {"orders": Files("json", [
        {"id": f"{n}", "raw": text, "on": f"2024-01-0{n + 1}", "price": n / 4}
        for n, text in enumerate(("AQL/", "AQI=", "Zm9v"))
    ], schema="id STRING, raw BINARY, on DATE, price DECIMAL(10,2)", per_step=1)}
    oracle = "batch"

    def transform(self, env):
        return env.input("orders").selectExpr(
            "id", "raw", "array(raw) AS all", "map(on, 1) AS days", "map(price, raw) AS prices",
            "map(timestamp(on), 1) AS times", "map(double(price), id) AS floats",
            "hex(raw) AS text")

    def write(self, df, env):
        def write(batch, batch_id):
            lines = batch.toJSON().collect()
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        return df.writeStream.foreachBatch(write).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        files = sorted(env.workdir.glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.open()]

class AsFiles(AsLines):
    def write(self, df, env):
        return df.writeStream.format("parquet").option("path", str(env.workdir / "out")).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return env.spark.read.parquet(str(env.workdir / "out")).collect()
"""


@pytest.mark.spark
@pytest.mark.parametrize("name", ["AsLines", "AsFiles"])
def test_a_job_that_writes_bytes_and_maps_is_right(
    environments: SparkEnvironments, tmp_path: Path, name: str
) -> None:
    job = tmp_path / "theirs.py"
    job.write_text(JOB)
    asked = Request(f"{job}:{name}", contract="job", clean_only=True)
    result = check_one_job(asked, environments)
    assert (result.verdict, result.anomalies) == ("valid", ())
