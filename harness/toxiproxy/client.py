"""A strict, typed client of Toxiproxy's HTTP API.

It speaks through ``toxiproxy-python``'s API consumer, of which each client has a subclass of its
own: that package keeps host and port in a class, has no time limits and no update of toxics.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import requests
from toxiproxy.api import APIConsumer, validate_response
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from bettong.engine.address import Address
from bettong.harness.toxiproxy import traffic
from bettong.harness.toxiproxy.errors import (
    ProxyExistsError,
    ProxyNotFoundError,
    ToxiproxyError,
    ToxiproxyHungError,
)
from bettong.harness.toxiproxy.spec import Toxic, check_name, checked_attributes, hint

TIME_LIMIT = 10.0  # a busy machine must not pass for a hung server


@dataclass(frozen=True)
class Proxy:
    """A proxy, as wanted or as the server described it.

    Attributes:
        upstream: ``host:port`` that the proxy connects to.
        listen: ``host:port`` that clients connect to; with port 0, the server chooses one.
        enabled: a disabled proxy refuses connections and has closed those it had.
        toxics: upstream ones first, each stream's in the order in which they act.
    """

    name: str
    upstream: str
    listen: str = "127.0.0.1:0"
    enabled: bool = True
    toxics: tuple[Toxic, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)

    @property
    def address(self) -> Address:
        """Where clients connect to."""
        return Address.parse(self.listen)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Proxy:
        return cls(
            given["name"],
            given["upstream"],
            given["listen"],
            given["enabled"],
            tuple(Toxic.from_json(toxic) for toxic in given["toxics"] or ()),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "upstream": self.upstream,
            "listen": self.listen,
            "enabled": self.enabled,
        }


class _Consumer(APIConsumer):  # type: ignore[misc]
    """toxiproxy-python's consumer for one server: an own session, and a limit on every call."""

    session: ClassVar[requests.Session]
    time_limit: ClassVar[float]

    @classmethod
    def call(cls, method: str, path: str, body: Any = None) -> requests.Response:
        response = cls.session.request(
            method, f"http://{cls.host}:{cls.port}{path}", json=body, timeout=cls.time_limit
        )
        validate_response(response)
        return response


def _bound_consumer(url: str, time_limit: float) -> type[_Consumer]:
    parts = urlsplit(url if "//" in url else f"http://{url}")
    try:
        port = parts.port or 8474
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        raise ToxiproxyError(f"{url!r} is no address of a Toxiproxy, such as http://127.0.0.1:8474")
    session = requests.Session()
    session.trust_env = False  # an HTTP proxy of the environment is not meant for this
    session.headers["User-Agent"] = "bettong"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    members = {"host": host, "port": port, "session": session, "time_limit": time_limit}
    return type("BoundConsumer", (_Consumer,), members)


class Toxiproxy:
    """One Toxiproxy server; every call has a time limit, in seconds.

    All methods raise ToxiproxyHungError when the server does not answer in time or at all,
    ProxyNotFoundError, ProxyExistsError, and ToxiproxyError for all else that it refuses.
    """

    def __init__(self, url: str = "http://127.0.0.1:8474", time_limit: float = TIME_LIMIT) -> None:
        self._consumer = _bound_consumer(url, time_limit)
        self.url = f"http://{self._consumer.host}:{self._consumer.port}"

    def _call(self, method: str, path: str, body: Any = None) -> requests.Response:
        try:
            response = self._send(method, path, body)
        except requests.RequestException as e:
            raise ToxiproxyHungError(
                f"Toxiproxy at {self.url} gave no answer to {method} {path} within "
                f"{self._consumer.time_limit:g} s ({type(e).__name__}): is it running, or hung?"
            ) from None
        except ProxyExists as e:
            raise ProxyExistsError(f"{method} {path}: {_reason(e.args[0])}") from None
        except NotFound as e:
            raise ProxyNotFoundError(f"{method} {path}: {_reason(e.args[0])}") from None
        except InvalidToxic as e:
            raise ToxiproxyError(f"{method} {path}: {_reason(e.args[0])}") from None
        if not response.ok:
            raise ToxiproxyError(
                f"{method} {path}: answered {response.status_code}: {_reason(response.content)}"
            )
        return response

    def _send(self, method: str, path: str, body: Any) -> requests.Response:
        try:
            return self._consumer.call(method, path, body)
        except requests.ConnectTimeout:
            raise
        except requests.ConnectionError:  # a kept connection, closed by the server just now
            return self._consumer.call(method, path, body)

    def _call_about(
        self, proxy: str, method: str, path: str = "", body: Any = None
    ) -> requests.Response:
        try:
            return self._call(method, _path(proxy) + path, body)
        except ProxyNotFoundError as e:
            raise self._nearest(proxy, e) from None

    def _nearest(self, name: str, error: ProxyNotFoundError) -> ProxyNotFoundError:
        known = self._call("GET", "/proxies").json()
        if name in known:  # then it is the toxic that is not there
            toxics = [toxic["name"] for toxic in known[name]["toxics"]]
            return ProxyNotFoundError(f"{error}; proxy {name!r} has the toxics {toxics}")
        return ProxyNotFoundError(f"no proxy is called {name!r}{hint(name, known)}")

    def version(self) -> str:
        return str(self._call("GET", "/version").json()["version"])

    def proxies(self) -> dict[str, Proxy]:
        answer = self._call("GET", "/proxies").json()
        return {name: Proxy.from_json(given) for name, given in answer.items()}

    def proxy(self, name: str) -> Proxy:
        return Proxy.from_json(self._call_about(name, "GET").json())

    def create(self, proxy: Proxy) -> Proxy:
        """Create it with its toxics; what comes back has the address it really listens on."""
        created = Proxy.from_json(self._call("POST", "/proxies", proxy.to_json()).json())
        for toxic in proxy.toxics:
            self.add_toxic(proxy.name, toxic)
        return replace(created, toxics=proxy.toxics)

    def populate(self, proxies: Iterable[Proxy]) -> list[Proxy]:
        """Create all of them in one call. Those that are there and are the same are left as they
        are, with their connections and toxics; others of the same names are replaced. Toxics are
        then brought to what is asked for.
        """
        wanted = list(proxies)
        answer = self._call("POST", "/populate", [proxy.to_json() for proxy in wanted]).json()
        made = [Proxy.from_json(given) for given in answer["proxies"]]
        for proxy, found in zip(wanted, made, strict=True):
            for toxic in found.toxics:
                if toxic not in proxy.toxics:
                    self.remove_toxic(proxy.name, toxic.name)
            for toxic in proxy.toxics:
                if toxic not in found.toxics:
                    self.add_toxic(proxy.name, toxic)
        return [replace(m, toxics=w.toxics) for m, w in zip(made, wanted, strict=True)]

    def enable(self, name: str) -> Proxy:
        return Proxy.from_json(self._call_about(name, "POST", body={"enabled": True}).json())

    def disable(self, name: str) -> Proxy:
        """Close its connections and refuse new ones."""
        return Proxy.from_json(self._call_about(name, "POST", body={"enabled": False}).json())

    def delete(self, name: str) -> None:
        self._call_about(name, "DELETE")

    def reset(self) -> None:
        """Enable every proxy and remove every toxic."""
        self._call("POST", "/reset")

    def add_toxic(self, proxy: str, toxic: Toxic) -> None:
        """In force, when this returns, for connections that are open and those to come."""
        self._call_about(proxy, "POST", "/toxics", toxic.to_json())

    def update_toxic(
        self, proxy: str, name: str, attributes: Mapping[str, int], toxicity: float | None = None
    ) -> Toxic:
        """Change some attributes, or the toxicity; the rest stays. Raises ToxicError."""
        path = f"/toxics/{quote(name, safe='')}"
        old = Toxic.from_json(self._call_about(proxy, "GET", path).json())
        merged = checked_attributes(old.type, {**old.attributes, **attributes})
        new = replace(
            old, attributes=merged, toxicity=old.toxicity if toxicity is None else toxicity
        )
        body = {"attributes": merged, "toxicity": new.toxicity}
        self._call_about(proxy, "POST", path, body)
        return new

    def remove_toxic(self, proxy: str, name: str) -> None:
        self._call_about(proxy, "DELETE", f"/toxics/{quote(name, safe='')}")

    def traffic(self, proxy: str) -> traffic.Traffic | None:
        """What crossed a proxy; None when this server does not say (a Toxiproxy that was started
        without ``-proxy-metrics``)."""
        with suppress(ProxyNotFoundError):  # no such proxy, or not the embedded server
            return traffic.from_json(self._call("GET", f"{_path(proxy)}/traffic").json())
        self.proxy(proxy)
        with suppress(ProxyNotFoundError):
            return traffic.from_metrics(self._call("GET", "/metrics").text, proxy)
        return None


def _path(proxy: str) -> str:
    return f"/proxies/{quote(proxy, safe='')}"


def _reason(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace").strip()[:200]
