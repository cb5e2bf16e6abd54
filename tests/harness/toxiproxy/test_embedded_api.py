"""The embedded API given nonsense: an answer to everything, and nothing that runs for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bettong.harness.toxiproxy import spec
from bettong.harness.toxiproxy.embedded.api import Api
from bettong.harness.toxiproxy.embedded.stages import Tally
from bettong.harness.toxiproxy.embedded.toxics import STAGES

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
addresses = st.sampled_from(
    ["127.0.0.1:0", ":0", "", "127.0.0.1", "127.0.0.1:99999", "[::1]:0", "1.2.3.4:x", ":²"]
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["p", "", "a/b"]) | values,
        "listen": addresses | st.none() | st.integers(),
        "upstream": st.just("127.0.0.1:1") | values,
        "enabled": st.booleans() | values,
        "type": st.sampled_from([*spec.TOXICS, "none"]) | values,
        "stream": st.sampled_from([*spec.STREAMS, "up"]) | values,
        "toxicity": st.floats() | values,
        "attributes": st.dictionaries(
            st.sampled_from(sorted({name for known in spec.TOXICS.values() for name in known})),
            st.integers() | values,
            max_size=3,
        )
        | values,
    },
)
paths = st.sampled_from(
    [
        "/proxies",
        "/proxies/p",
        "/proxies/p/toxics",
        "/proxies/p/toxics/latency_downstream",
        "/proxies/p/traffic",
        "/populate",
        "/reset",
        "/metrics",
        "/version",
        "/",
        "//",
        "/proxies/%00/toxics",
    ]
)


@pytest.fixture
def api() -> Iterator[Api]:
    loop = asyncio.new_event_loop()
    api = Api(loop)
    yield api
    for proxy in api.proxies.values():
        proxy.stop()
    loop.close()


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(
    st.sampled_from(["GET", "POST", "PATCH", "DELETE", "PUT"]),
    paths,
    st.one_of(st.binary(max_size=20), fields, st.lists(fields, max_size=2), values),
)
def test_every_call_is_answered(api: Api, method: str, path: str, body: object) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = api.handle(method, path, sent)
    assert answer.status in (200, 201, 204, 400, 404, 405, 409, 500)
    if answer.content_type == "application/json" and answer.body:
        json.loads(answer.body, parse_constant=pytest.fail)
    assert api.handle("GET", "/version", b"").status == 200


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 10_000, b'{"toxicity": NaN}', b"\xff"])
def test_hostile_json_is_a_bad_request(api: Api, body: bytes) -> None:
    assert api.handle("POST", "/proxies", body).status == 400


class _Sink:
    def __init__(self) -> None:
        self.got = b""

    def data(self, chunk: bytes, at: float) -> None:
        self.got += chunk

    def eof(self) -> None:
        pass


@given(
    st.sampled_from(sorted(spec.TOXICS)),
    st.data(),
    st.lists(st.binary(min_size=1, max_size=500), max_size=5),
)
def test_no_attribute_makes_a_toxic_run_for_ever_or_invent_bytes(
    kind: str, data: st.DataObject, chunks: list[bytes]
) -> None:
    attributes = {
        name: data.draw(st.integers(-10, 10) | st.integers(-(2**63), 2**63 - 1))
        for name in spec.TOXICS[kind]
    }
    loop = asyncio.new_event_loop()
    try:
        stage, sink = STAGES[kind](loop, attributes, Tally()), _Sink()
        stage.next = sink
        for chunk in chunks:
            stage.data(chunk, loop.time())
        stage.update(attributes)
        stage.release()
        stage.eof()
        stage.stop()
        assert b"".join(chunks).startswith(sink.got)
    finally:
        loop.close()
