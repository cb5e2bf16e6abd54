"""The HTTP API's routes, without HTTP: (method, path, body) in, (status, body) out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from bettong.harness.toxiproxy.embedded.fields import (
    ApiError,
    attribute_fields,
    json_object,
    parsed,
    proxy_fields,
    text_field,
    toxicity_field,
)
from bettong.harness.toxiproxy.embedded.proxy import Proxy
from bettong.harness.toxiproxy.embedded.toxic import Toxic
from bettong.harness.toxiproxy.spec import STREAMS, TOXICS

VERSION = "2.12.0"  # whose behaviour this server has


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"


def _json(status: int, value: Any) -> Response:
    return Response(status, json.dumps(value).encode())


@dataclass
class Api:
    """Every proxy of this server. All methods are to be called on the event loop."""

    loop: asyncio.AbstractEventLoop
    proxies: dict[str, Proxy] = field(default_factory=dict)

    def handle(self, method: str, path: str, body: bytes) -> Response:
        try:
            return self._route(method, path, body)
        except ApiError as e:
            answer = _json(e.status, {"error": str(e), "status": e.status})
        except (OSError, ValueError) as e:  # an address that cannot be listened on
            answer = _json(500, {"error": str(e), "status": 500})
        return answer

    def _route(self, method: str, path: str, body: bytes) -> Response:
        if method == "PATCH":
            method = "POST"
        match [unquote(part) for part in path.split("?")[0].strip("/").split("/")]:
            case ["version"]:
                routes = {"GET": lambda: _json(200, {"version": VERSION})}
            case ["metrics"]:
                routes = {"GET": self._metrics}
            case ["reset"]:
                routes = {"POST": self._reset}
            case ["populate"]:
                routes = {"POST": lambda: self._populate(body)}
            case ["proxies"]:
                routes = {"GET": self._index, "POST": lambda: self._create(json_object(body))}
            case ["proxies", name]:
                routes = {
                    "GET": lambda: _json(200, self._proxy(name).to_json()),
                    "POST": lambda: self._update(self._proxy(name), json_object(body)),
                    "DELETE": lambda: self._delete(self._proxy(name)),
                }
            case ["proxies", name, "traffic"]:
                routes = {"GET": lambda: _json(200, self._proxy(name).traffic())}
            case ["proxies", name, "toxics"]:
                routes = {
                    "GET": lambda: _json(200, self._proxy(name).to_json()["toxics"]),
                    "POST": lambda: self._add_toxic(self._proxy(name), json_object(body)),
                }
            case ["proxies", name, "toxics", toxic]:
                routes = self._toxic_routes(name, toxic, body)
            case _:
                return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        if method not in routes:
            return Response(405)
        return routes[method]()

    def _toxic_routes(
        self, name: str, toxic: str, body: bytes
    ) -> dict[str, Callable[[], Response]]:
        return {
            "GET": lambda: _json(200, self._toxic(name, toxic).to_json()),
            "POST": lambda: self._update_toxic(name, toxic, json_object(body)),
            "DELETE": lambda: self._delete_toxic(name, toxic),
        }

    def _proxy(self, name: str) -> Proxy:
        if name not in self.proxies:
            raise ApiError(404, "proxy not found")
        return self.proxies[name]

    def _toxic(self, name: str, toxic: str) -> Toxic:
        proxy = self._proxy(name)
        if toxic not in proxy.toxics:
            raise ApiError(404, "toxic not found")
        return proxy.toxics[toxic]

    def _index(self) -> Response:
        return _json(200, {name: proxy.to_json() for name, proxy in self.proxies.items()})

    def _create(self, given: dict[str, Any]) -> Response:
        name, listen, upstream, enabled = proxy_fields(given, "")
        if name in self.proxies:
            raise ApiError(409, "proxy already exists")
        return _json(201, self._add(name, listen, upstream, enabled).to_json())

    def _add(self, name: str, listen: str, upstream: str, enabled: bool) -> Proxy:
        proxy = Proxy(self.loop, name, listen, upstream)
        if enabled:
            proxy.start()
        self.proxies[name] = proxy
        return proxy

    def _update(self, proxy: Proxy, given: dict[str, Any]) -> Response:
        defaults = {"listen": proxy.listen, "upstream": proxy.upstream, "enabled": proxy.enabled}
        _, listen, upstream, enabled = proxy_fields({**defaults, **given, "name": proxy.name}, "")
        if (listen, upstream) != (proxy.listen, proxy.upstream):
            if proxy.enabled:
                proxy.stop()
            proxy.listen, proxy.upstream = listen, upstream
        if enabled != proxy.enabled:
            if enabled:
                proxy.start()
            else:
                proxy.stop()
        return _json(200, proxy.to_json())

    def _delete(self, proxy: Proxy) -> Response:
        proxy.stop()
        del self.proxies[proxy.name]
        return Response(204)

    def _populate(self, body: bytes) -> Response:
        given = parsed(body)
        if not isinstance(given, list) or not all(isinstance(p, dict) for p in given):
            raise ApiError(400, "bad request body: a list of proxies is expected")
        wanted = [proxy_fields(p, f" at proxy {i}") for i, p in enumerate(given, 1)]
        proxies = []
        for name, listen, upstream, enabled in wanted:
            existing = self.proxies.get(name)
            if existing is None or (listen, upstream) != (existing.listen, existing.upstream):
                if existing is not None:
                    existing.stop()
                existing = self._add(name, listen, upstream, enabled)
            proxies.append(existing)
        return _json(201, {"proxies": [proxy.to_json() for proxy in proxies]})

    def _reset(self) -> Response:
        for proxy in self.proxies.values():
            if not proxy.enabled:
                proxy.start()
            for name in list(proxy.toxics):
                proxy.remove_toxic(name)
        return Response(204)

    def _add_toxic(self, proxy: Proxy, given: dict[str, Any]) -> Response:
        kind = text_field(given, "type")
        stream = text_field(given, "stream", "downstream")
        name = text_field(given, "name") or f"{kind}_{stream}"
        if stream not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        if kind not in TOXICS:
            raise ApiError(400, "invalid toxic type")
        if name in proxy.toxics:
            raise ApiError(409, "toxic already exists")
        attributes = dict.fromkeys(TOXICS[kind], 0) | attribute_fields(kind, given)
        toxic = Toxic(name, kind, stream, toxicity_field(given, 1.0), attributes)
        proxy.add_toxic(toxic)
        return _json(200, toxic.to_json())

    def _update_toxic(self, name: str, toxic_name: str, given: dict[str, Any]) -> Response:
        toxic = self._toxic(name, toxic_name)
        attributes = toxic.attributes | attribute_fields(toxic.type, given)
        toxic.toxicity = toxicity_field(given, toxic.toxicity)
        toxic.attributes = attributes
        self.proxies[name].changed_toxic(toxic)
        return _json(200, toxic.to_json())

    def _delete_toxic(self, name: str, toxic: str) -> Response:
        self._toxic(name, toxic)
        self.proxies[name].remove_toxic(toxic)
        return Response(204)

    def _metrics(self) -> Response:
        """Prometheus' text format, the two counters of Toxiproxy's ``-proxy-metrics``."""
        lines = []
        for metric, of in (("received", "received"), ("sent", "passed")):
            lines.append(f"# TYPE toxiproxy_proxy_{metric}_bytes_total counter")
            for proxy in self.proxies.values():
                for stream in STREAMS:
                    labels = ",".join(
                        f"{key}={json.dumps(value)}"
                        for key, value in (
                            ("direction", stream),
                            ("listener", proxy.listen),
                            ("proxy", proxy.name),
                            ("upstream", proxy.upstream),
                        )
                    )
                    count = getattr(proxy.counts(stream), of)
                    lines.append(f"toxiproxy_proxy_{metric}_bytes_total{{{labels}}} {count}")
        return Response(200, "\n".join([*lines, ""]).encode(), "text/plain; version=0.0.4")
