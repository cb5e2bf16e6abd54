"""Histories are compared by JSON's own types, exactly, each record by itself."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bettong.harness.checkers.levels import Judgement
from bettong.harness.checkers.records import same
from bettong.harness.histories import Columns, StoredCheck, StoredHistory
from bettong.harness.histories.hashing import hash_column
from bettong.harness.histories.json_lines import json_tables
from bettong.harness.histories.json_values import canonical, float_of, json_array, parse, shown
from bettong.harness.histories.malformed import MalformedHistoryError


def judged(folder: Path, expected: list[str], observed: list[str]) -> Judgement:
    (folder / "e.jsonl").write_text("".join(f"{line}\n" for line in expected))
    (folder / "o.jsonl").write_text("".join(f"{line}\n" for line in observed))
    return StoredCheck(
        StoredHistory.at(folder / "e.jsonl", "expected"),
        StoredHistory.at(folder / "o.jsonl", "observed"),
        Columns(key=None, compare=("v",)),
        "none",
    ).judge()


def one(value: str) -> list[str]:
    return [f'{{"id": "a", "v": {value}}}']


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("9223372036854775808", "9223372036854775809"),
        ("-9223372036854775809", "-9223372036854775810"),
        ("18446744073709551615", "-1"),
        ('{"x": [9223372036854775808]}', '{"x": [9223372036854775809]}'),
        ("1" + "0" * 400, "2" + "0" * 400),
        ("1" + "0" * 9000, "2" + "0" * 9000),
        ("1e400", "2e400"),
        ("1e-400", "0"),
        ("0.1", "0.10000000000000000001"),
        ("9007199254740993.0", "9007199254740992.0"),
        ("1152921504606847000.5", "1152921504606846976.5"),
        ("true", "1"),
        ("false", "0"),
        ("true", '"true"'),
        ("1", '"1"'),
        ('""', "0"),
        ('""', "null"),
        ('"null"', "null"),
        ("4609434218613702656", "1.5"),
        ("[1]", "[true]"),
        ("[1]", '"[1]"'),
        ("[]", "{}"),
        ('{"a": null}', "{}"),
        ('{"a": "1"}', '{"a": 1}'),
        ('"2020-01-01"', '"2020-01-01 00:00:00"'),
        ('"2020-01-01T00:00:00Z"', '"2020-01-01T01:00:00+01:00"'),
        (r'"\ud800"', r'"\ud801"'),
    ],
)
def test_different_values_are_corrupt(tmp_path: Path, left: str, right: str) -> None:
    for a, b in ((left, right), (right, left)):
        judgement = judged(tmp_path, one(a), one(b))
        assert (judgement.verdict, judgement.counts) == ("invalid", {"Corrupt": 1}), (a, b)
    assert judged(tmp_path, one(left), one(left)).verdict == "valid"
    assert judged(tmp_path, one(right), one(right)).verdict == "valid"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1", "1.0"),
        ("1000", "1e3"),
        ("0", "-0.0"),
        ("0.1", "10e-2"),
        ("9223372036854775808", "9223372036854775808.0"),
        ("1e400", "10e399"),
        ("1.5", "1.50000000000000000000"),
        ('"a"', r'"\u0061"'),
        ('{"a": 1, "b": 2.0}', '{"b": 2, "a": 1.0}'),
        ("[1e2]", "[100]"),
    ],
)
def test_the_same_value_may_be_written_in_several_ways(
    tmp_path: Path, left: str, right: str
) -> None:
    assert judged(tmp_path, one(left), one(right)).verdict == "valid"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("9223372036854775808", "9223372036854775809"),
        ("1" + "0" * 29, "1" + "0" * 28 + "1"),
        ("-" + "7" * 99, "-" + "7" * 98 + "8"),
    ],
)
def test_long_integers_are_shown_as_they_are_written(tmp_path: Path, left: str, right: str) -> None:
    (changed,) = judged(tmp_path, one(left), one(right)).anomalies
    told = [Decimal(str(value)) for value in (changed.expected, changed.seen)]
    assert told == [Decimal(left), Decimal(right)]
    ids = [f'{{"id": {name}, "v": 1}}' for name in (left, right)]
    assert [a.messages for a in judged(tmp_path, ids, []).anomalies] == [(left,), (right,)]
    assert [a.messages for a in judged(tmp_path, [], ids).anomalies] == [(left,), (right,)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0.1", 0.1),
        ("-0.0", 0),
        ("1e300", 1e300),
        ("1e400", "1E+400"),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("12345678901234567890.5", "12345678901234567890.5"),
        ("-1e-999999999999999", "-1E-999999999999999"),
        ("3" * 101, "3" * 101),
        ('[{"a": 1e29}, true]', [{"a": 10**29}, True]),
    ],
)
def test_numbers_are_shown_exactly(text: str, told: object) -> None:
    assert same(shown(canonical(parse(text))), told)


def test_a_record_does_not_change_how_another_is_read(tmp_path: Path) -> None:
    expected = ['{"id": "a", "v": 1}', '{"id": "b", "v": {"x": 1}}', '{"id": "c", "v": 2.5}']
    beside = [*expected, '{"id": "d", "v": "text"}', '{"id": "e", "v": {"y": 1}}']
    judgement = judged(tmp_path, expected, beside)
    assert judgement.counts == {"Phantom": 2}


def test_long_integers_are_two_ids(tmp_path: Path) -> None:
    ids = ["9223372036854775808", "9223372036854775809", "1" + "0" * 400, "2" + "0" * 400]
    lines = [f'{{"id": {name}, "v": 1}}' for name in ids]
    assert judged(tmp_path, lines, lines).verdict == "valid"
    assert judged(tmp_path, lines, lines[:1] + lines[2:]).counts == {"Loss": 1}
    twice = judged(tmp_path, ['{"id": 1, "v": 1}', '{"id": 1.0, "v": 1}'], [])
    assert twice.verdict == "unknown" and "as record 1 has" in twice.reason


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "v": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"id": "a", "v": ' + '{"a":' * 300 + "1" + "}" * 301,
        '{"id": "a", "v": ' + "[" * 50_000,
        '{"id": "a", "v": 1, "v": 2}',
        '{"id": "a", "v": 1e99999999999999999999}',
        '{"id": "a", "v": tru}',
        "\x00",
    ],
)
def test_what_cannot_be_judged_is_named_and_unknown(tmp_path: Path, line: str) -> None:
    judgement = judged(tmp_path, one("1"), [*one("1"), line])
    assert judgement.verdict == "unknown"
    assert "o.jsonl:2: " in judgement.reason


@pytest.mark.parametrize("text", ['{"id": 1}{"id": 2}\n', '{"id": 1} {"id": 2}', '{"id":\n1}\n'])
@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_line_is_one_object(tmp_path: Path, text: str, blank: str) -> None:
    history = tmp_path / "h.jsonl"
    history.write_text(blank + text)
    with pytest.raises(MalformedHistoryError, match=f"h.jsonl:{len(blank) + 1}: not JSON"):
        list(json_tables(history, None))


@pytest.mark.parametrize("between", ["\n", "\r\n", "\n\n", "\n  "])
def test_blanks_around_lines_are_passed_over(tmp_path: Path, between: str) -> None:
    history = tmp_path / "h.jsonl"
    history.write_bytes(f'\ufeff{{"id": 1}}{between}{{"id": 2}}{between}'.encode())
    assert [table.num_rows for table in json_tables(history, None)] == [2]


def test_text_that_is_no_utf_8_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"id": "a", "v": 1}\n')
    (tmp_path / "o.jsonl").write_bytes(b'{"id": "a", "v": "\xff"}\n')
    left = StoredHistory.at(tmp_path / "e.jsonl", "expected")
    right = StoredHistory.at(tmp_path / "o.jsonl", "observed")
    judgement = StoredCheck(left, right, Columns(key=None, compare=("v",)), "none").judge()
    assert judgement.verdict == "unknown" and "o.jsonl:1" in judgement.reason


def test_columns_of_arrow_have_the_same_values_as_json(tmp_path: Path) -> None:
    columns = {
        "9223372036854775808": pa.array([2**63], pa.uint64()),
        "-1": pa.array([-1], pa.int8()),
        "1.5": pa.array([1.5], pa.float32()),
        "0.1": pa.array([0.1]),
        "1e300": pa.array([1e300]),
        "true": pa.array([True]),
        '"a"': pa.array(["a"]).dictionary_encode(),
        "[1, 2.5]": pa.array([[1, 2.5]]),
        '{"a": "x"}': pa.array([{"a": "x"}]),
        "null": pa.array([None], pa.int32()),
    }
    hashes = {text: int(hash_column(array)[0]) for text, array in columns.items()}
    for text, found in hashes.items():
        assert found == int(hash_column(json_array([parse(text)]))[0]), text
    assert len(set(hashes.values())) == len(hashes)
    pq.write_table(pa.table({"id": ["a"], "v": pa.array([2**64 - 1], pa.uint64())}),
                   tmp_path / "e.parquet")  # fmt: skip
    pq.write_table(pa.table({"id": ["a"], "v": pa.array([-1])}), tmp_path / "o.parquet")
    left = StoredHistory.at(tmp_path / "e.parquet", "expected")
    right = StoredHistory.at(tmp_path / "o.parquet", "observed")
    judgement = StoredCheck(left, right, Columns(key=None, compare=("v",)), "none").judge()
    assert judgement.counts == {"Corrupt": 1}


def test_times_are_the_same_in_all_units() -> None:
    at = np.datetime64("2020-01-01T00:00:00.001", "ms")
    milli, nano = (pa.array([at]).cast(pa.timestamp(unit)) for unit in ("ms", "ns"))
    assert hash_column(milli) == hash_column(nano)
    assert hash_column(milli) != hash_column(milli.cast(pa.timestamp("ms", "UTC")))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)  # fmt: skip
values = st.recursive(
    scalars, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3)
)


@given(values, values)
def test_canonical_texts_agree_with_the_small_checker(a: object, b: object) -> None:
    texts = [canonical(parse(json.dumps(x))) for x in (a, b)]
    assert (texts[0] == texts[1]) == same(a, b)
    assert canonical(parse(texts[0])) == texts[0]
    first, second = hash_column(json_array([parse(t) for t in texts]))
    assert (first == second) == same(a, b)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_found_again_in_its_text(value: float) -> None:
    assume(abs(value) >= 2.0**63 or value % 1)
    assert float_of(canonical(value)) == value


def test_the_small_checker_knows_types() -> None:
    assert not same(True, 1) and not same({"a": [False]}, {"a": [0]}) and not same("1", 1)
    assert same(1, 1.0) and same([float("nan")], [float("nan")]) and same({"a": 1}, {"a": 1.0})
    assert not same({"a": None}, {"b": None}) and not same([1], [1, 2])
