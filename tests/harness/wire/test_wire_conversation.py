"""Requests by their place in a recording."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.wire.conversation import RequestId

endpoints = st.text(st.characters(exclude_characters="/"), min_size=1)


@given(endpoints, st.integers(0, 999), st.integers(1, 10**6), st.text())
def test_a_request_is_read_back_from_its_id(
    endpoint: str, connection: int, index: int, label: str
) -> None:
    request = RequestId(endpoint, connection, index, label)
    assert RequestId.parse(str(request)) == request


def test_other_text_names_no_request() -> None:
    assert RequestId.parse("kv/2nd SET") is None
    assert RequestId.parse("db/conn=1/request=1") == RequestId("db", 1, 1)
