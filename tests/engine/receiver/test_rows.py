"""Rows on the wire and as visible lines."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine.net.block import Block
from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver import rows as module
from bettong.engine.receiver.rows import Columns, Row, lines

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.text("az09./ ~", max_size=8)


def made(one: st.SearchStrategy[str]) -> st.SearchStrategy[list[Row]]:
    data = st.binary(max_size=8) | one.map(str.encode)
    return st.lists(st.builds(Row, one, st.none() | one, data), max_size=12)


def read(found: module.Buffer) -> list[Row]:
    out = []
    for line in bytes(found).splitlines():
        row = json.loads(line)
        assert row["batch"] == 7
        data = row["data"].encode() if "data" in row else base64.b64decode(row["base64"])
        out.append(Row(row["id"], row["key"], data))
    return out


@given(made(text) | made(plain), st.sampled_from([1, 500]))
def test_lines_say_what_the_rows_were(rows: list[Row], many: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MANY", many)
        assert read(lines(7, Columns.of(rows))) == rows


@given(st.lists(st.builds(Row, plain, plain, plain.map(str.encode)), min_size=1), st.booleans())
def test_both_ways_of_writing_lines_agree(rows: list[Row], keyed: bool) -> None:
    columns = Columns.of([row if keyed else row._replace(key=None) for row in rows])
    assert bytes(module._plain_lines(7, columns)) == bytes(lines(7, columns))


@given(made(text), st.integers(1, 200))
def test_parts_hold_all_rows_in_order(rows: list[Row], size: int) -> None:
    parts = list(Columns.of(rows).parts(size))
    assert parts
    assert b"".join(bytes(lines(7, part)) for part in parts) == bytes(lines(7, Columns.of(rows)))
    assert all(part.keyed for part in parts) or not rows


def test_columns_must_fit_together() -> None:
    one, two = Block.of([b"a"]), Block.of([b"a", b"b"])
    with pytest.raises(RefusedError, match="differ in length"):
        lines(0, Columns(one, two, b"\1", one))
    with pytest.raises(RefusedError, match="not UTF-8"):
        lines(0, Columns(Block.of([b"\xff"]), one, b"\1", one))
