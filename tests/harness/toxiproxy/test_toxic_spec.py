"""Toxics are checked before they are sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.toxiproxy import Proxy, Toxic, ToxicError, spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": "latncy"}, "did you mean 'latency'"),
        ({"type": "latency", "attributes": {"latncy": 1}}, "did you mean 'latency'"),
        ({"type": "latency", "stream": "up"}, "upstream or downstream"),
        ({"type": "latency", "toxicity": 7.0}, "not within 0 and 1"),
        ({"type": "latency", "toxicity": float("nan")}, "not within 0 and 1"),
        ({"type": "latency", "toxicity": True}, "not within 0 and 1"),
        ({"type": "latency", "attributes": {"latency": -1}}, "latency=-1 ms is not within 0"),
        ({"type": "latency", "attributes": {"latency": 1.5}}, "whole number of ms"),
        ({"type": "latency", "attributes": {"latency": "1"}}, "whole number of ms"),
        ({"type": "latency", "name": "a/b"}, "no name"),
        ({"type": "bandwidth"}, "needs rate"),
        ({"type": "bandwidth", "attributes": {"rate": -5}}, "not within"),
        ({"type": "limit_data"}, "needs bytes"),
        ({"type": "slicer", "attributes": {"average_size": 0}}, "not within 1"),
        (
            {"type": "slicer", "attributes": {"average_size": 5, "size_variation": 5}},
            "less than average_size",
        ),
    ],
)
def test_what_the_server_would_misread_is_refused(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ToxicError, match=message):
        Toxic(**arguments)  # type: ignore[arg-type]


def test_a_toxic_has_toxiproxys_default_name() -> None:
    assert spec.latency(10).name == "latency_downstream"
    assert spec.limit_data(3, "upstream").name == "limit_data_upstream"


@pytest.mark.parametrize("name", ["", "a/b", "a\nb"])
def test_a_proxy_needs_a_name_that_paths_can_carry(name: str) -> None:
    with pytest.raises(ToxicError):
        Proxy(name, "127.0.0.1:1")


@given(
    st.sampled_from(sorted(spec.TOXICS)),
    st.sampled_from(spec.STREAMS),
    st.floats(0, 1),
    st.data(),
)
def test_what_is_right_survives_json(
    kind: str, stream: spec.Stream, toxicity: float, data: st.DataObject
) -> None:
    attributes = {
        name: data.draw(st.integers(limits.minimum, limits.maximum))
        for name, limits in spec.TOXICS[kind].items()
    }
    if kind == "slicer":
        attributes["size_variation"] %= attributes["average_size"]
    toxic = Toxic(kind, stream, attributes, "name", toxicity)
    assert Toxic.from_json(toxic.to_json()) == toxic
