"""A Toxiproxy that is restarted when it hangs or dies, with its proxies and toxics restored.

Toxiproxy 2.12 can hang for good while a toxic is removed (its issues 412 and 558).
"""

from __future__ import annotations

import threading
from typing import Any

import requests

from bettong.harness.toxiproxy.client import TIME_LIMIT, Proxy, Toxiproxy
from bettong.harness.toxiproxy.errors import ToxiproxyError, ToxiproxyHungError
from bettong.harness.toxiproxy.server import ToxiproxyServer

_EVERY_SECONDS = 2.0


class SupervisedToxiproxy(Toxiproxy):
    """The client of a server that is ours, with a watchdog.

    A call that gets no answer restarts the server at its address, restores its proxies and toxics,
    and is then made again. Between calls a thread looks whether the server answers. A restart cuts
    every connection: ``restarts`` says why each took place, so that a run can tell that it suffered
    a fault which was not planned. Calls raise ToxiproxyError when the server cannot be restarted.

    A context manager, which ends the thread but not the server.
    """

    def __init__(self, server: ToxiproxyServer, time_limit: float = TIME_LIMIT) -> None:
        super().__init__(server.url, time_limit)
        self.restarts: list[str] = []
        self._server = server
        self._lock = threading.RLock()
        self._known: dict[str, Proxy] = super().proxies()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="toxiproxy-watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _call(self, method: str, path: str, body: Any = None) -> requests.Response:
        with self._lock:
            try:
                return self._remembered_call(method, path, body)
            except ToxiproxyHungError as e:
                self._restore(str(e))
                return self._remembered_call(method, path, body)

    def _remembered_call(self, method: str, path: str, body: Any) -> requests.Response:
        response = super()._call(method, path, body)
        if method != "GET":
            answer = super()._call("GET", "/proxies").json()
            self._known = {name: Proxy.from_json(given) for name, given in answer.items()}
        return response

    def _restore(self, reason: str) -> None:
        self.restarts.append(reason)
        self._server.restart()
        plain = self._server.client(self._consumer.time_limit)
        for proxy in self._known.values():
            plain.create(proxy)

    def _watch(self) -> None:
        while not self._closed.wait(_EVERY_SECONDS):
            try:
                self.proxies()
            except ToxiproxyError as e:
                self.restarts.append(f"restart failed: {e}")
                return

    def __enter__(self) -> SupervisedToxiproxy:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
