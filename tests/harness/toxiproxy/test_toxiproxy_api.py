"""The HTTP API: the same answers from the embedded server and the real one."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from toxiproxy_ends import PATIENCE_S, Upstream

from bettong.harness.toxiproxy import (
    Proxy,
    ProxyExistsError,
    ProxyNotFoundError,
    Toxic,
    Toxiproxy,
    ToxiproxyError,
    spec,
)


def raw(api: Toxiproxy, method: str, path: str, body: object = None, agent: str = "test"):
    """A call as any HTTP client makes it: status and parsed body (or text)."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
    request = urllib.request.Request(api.url + path, data, {"User-Agent": agent}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as e:
        status, text = e.code, e.read()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode()


def test_a_proxy_is_created_shown_and_deleted(api: Toxiproxy, upstream: Upstream) -> None:
    created = api.create(Proxy("driver->receiver", upstream.address))
    assert created.enabled
    assert created.address[0] == "127.0.0.1"
    assert created.address[1] > 0
    assert api.proxy("driver->receiver") == created
    assert api.proxies() == {"driver->receiver": created}
    api.delete("driver->receiver")
    assert api.proxies() == {}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(created.address, timeout=PATIENCE_S)


def test_a_proxy_may_be_created_disabled(api: Toxiproxy, upstream: Upstream) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    created = api.create(Proxy("off", upstream.address, address, enabled=False))
    assert (created.enabled, created.listen) == (False, address)
    assert api.enable("off").enabled


def test_errors_name_what_is_there(api: Toxiproxy, proxy: Proxy) -> None:
    with pytest.raises(ProxyExistsError, match="already exists"):
        api.create(Proxy("link", proxy.upstream))
    with pytest.raises(ProxyNotFoundError, match="did you mean 'link'"):
        api.proxy("lnik")
    with pytest.raises(ProxyNotFoundError, match="there are link"):
        api.add_toxic("elsewhere", spec.latency(1))
    with pytest.raises(ProxyNotFoundError, match="toxic not found"):
        api.remove_toxic("link", "none")
    with pytest.raises(ToxiproxyError, match=r"(?i)address already in use"):
        api.create(Proxy("second", proxy.upstream, proxy.listen))
    assert set(api.proxies()) == {"link"}


def test_an_address_that_is_none_is_refused(api: Toxiproxy) -> None:
    with pytest.raises(ToxiproxyError):
        api.create(Proxy("bad", "127.0.0.1:1", "nonsense"))
    with pytest.raises(ToxiproxyError):
        api.create(Proxy("bad", "127.0.0.1:1", "127.0.0.1:99999"))
    assert api.proxies() == {}


def test_populate_keeps_what_is_the_same_and_replaces_the_rest(
    api: Toxiproxy, upstream: Upstream
) -> None:
    keep, change = api.populate([Proxy("keep", upstream.address), Proxy("go", "127.0.0.1:1")])
    api.add_toxic("keep", spec.latency(1))
    api.add_toxic("go", spec.latency(1))
    wanted = [replace(keep, toxics=(spec.latency(1),)), replace(change, upstream=upstream.address)]
    assert api.populate(wanted) == wanted
    assert api.proxies() == {p.name: p for p in wanted}


def test_populate_brings_toxics_to_what_is_asked(api: Toxiproxy, proxy: Proxy) -> None:
    api.add_toxic("link", spec.latency(1, name="old"))
    wanted = replace(proxy, toxics=(spec.bandwidth(10),))
    api.populate([wanted])
    assert api.proxy("link") == wanted


def test_toxics_are_added_changed_and_removed(api: Toxiproxy, proxy: Proxy) -> None:
    api.add_toxic("link", spec.latency(5, 2))
    api.add_toxic("link", spec.limit_data(7, "upstream", "cut"))
    assert api.proxy("link").toxics == (
        spec.limit_data(7, "upstream", "cut"),
        Toxic("latency", "downstream", {"latency": 5, "jitter": 2}, "latency_downstream"),
    )
    changed = api.update_toxic("link", "latency_downstream", {"latency": 6}, toxicity=0.5)
    assert changed.attributes == {"latency": 6, "jitter": 2}
    assert changed in api.proxy("link").toxics
    with pytest.raises(ProxyExistsError):
        api.add_toxic("link", spec.latency(5))
    api.remove_toxic("link", "latency_downstream")
    assert [t.name for t in api.proxy("link").toxics] == ["cut"]


def test_toxics_of_one_stream_keep_their_order(api: Toxiproxy, proxy: Proxy) -> None:
    for name in ("c", "a", "b"):
        api.add_toxic("link", spec.latency(1, name=name))
    api.remove_toxic("link", "a")
    assert [t.name for t in api.proxy("link").toxics] == ["c", "b"]


def test_reset_enables_every_proxy_and_removes_every_toxic(api: Toxiproxy, proxy: Proxy) -> None:
    api.add_toxic("link", spec.latency(1))
    api.disable("link")
    api.reset()
    assert api.proxy("link") == proxy


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/proxies", {"upstream": "127.0.0.1:1"}, 400, "missing required field: name"),
        ("POST", "/proxies", {"name": "x"}, 400, "missing required field: upstream"),
        ("POST", "/proxies", b"{", 400, "bad request body"),
        ("POST", "/proxies", b"[]", 400, "bad request body"),
        ("POST", "/populate", b"{}", 400, "bad request body"),
        ("POST", "/populate", [{"name": "x"}], 400, "missing required field: upstream at proxy 1"),
        ("GET", "/proxies/none", None, 404, "proxy not found"),
        ("DELETE", "/proxies/none", None, 404, "proxy not found"),
        ("GET", "/proxies/link/toxics/none", None, 404, "toxic not found"),
        ("PATCH", "/proxies/link/toxics/none", {"toxicity": 1}, 404, "toxic not found"),
        ("POST", "/proxies/link/toxics", {"type": "nope"}, 400, "invalid toxic type"),
        (
            "POST",
            "/proxies/link/toxics",
            {"type": "latency", "stream": "up"},
            400,
            "stream was invalid, can be either upstream or downstream",
        ),
        (
            "POST",
            "/proxies/link/toxics",
            {"type": "latency", "attributes": {"latency": "1s"}},
            400,
            "bad request body",
        ),
        (
            "POST",
            "/proxies/link/toxics",
            {"type": "latency", "attributes": {"latency": 1.5}},
            400,
            "bad request body",
        ),
    ],
)
def test_a_bad_call_is_answered_as_toxiproxy_does(
    api: Toxiproxy,
    proxy: Proxy,
    method: str,
    path: str,
    body: object,
    status: int,
    message: str,
) -> None:
    answered, error = raw(api, method, path, body)
    assert (answered, error["status"]) == (status, status)
    assert error["error"].startswith(message)
    assert api.proxy("link") == proxy


def test_other_routes_and_methods_are_not_there(api: Toxiproxy) -> None:
    assert raw(api, "GET", "/nothing")[0] == 404
    assert raw(api, "DELETE", "/proxies")[0] == 405
    assert raw(api, "GET", "/reset")[0] == 405


def test_a_browser_is_turned_away(api: Toxiproxy) -> None:
    assert raw(api, "GET", "/proxies", agent="Mozilla/5.0")[0] == 403


def test_the_server_is_as_lenient_as_toxiproxy(api: Toxiproxy, proxy: Proxy) -> None:
    status, toxic = raw(
        api,
        "POST",
        "/proxies/link/toxics",
        {"type": "latency", "toxicity": 7.0, "attributes": {"latncy": 100}},
    )
    assert status == 200
    assert toxic == {
        "name": "latency_downstream",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 7,
        "attributes": {"latency": 0, "jitter": 0},
    }
    api.delete("link")


def test_both_methods_of_updating_work(api: Toxiproxy, proxy: Proxy) -> None:
    for method, enabled in (("POST", False), ("PATCH", True)):
        status, shown = raw(api, method, "/proxies/link", {"enabled": enabled})
        assert (status, shown["enabled"]) == (200, enabled)


def test_statuses_of_success(api: Toxiproxy) -> None:
    wanted = {"name": "x", "upstream": "127.0.0.1:1", "listen": "127.0.0.1:0"}
    assert raw(api, "POST", "/proxies", wanted)[0] == 201
    assert raw(api, "POST", "/populate", [wanted])[0] == 201
    assert raw(api, "POST", "/proxies/x/toxics", {"type": "latency"})[0] == 200
    assert raw(api, "DELETE", "/proxies/x/toxics/latency_downstream") == (204, "")
    assert raw(api, "POST", "/reset") == (204, "")
    assert raw(api, "DELETE", "/proxies/x") == (204, "")
    assert raw(api, "GET", "/version")[0] == 200
