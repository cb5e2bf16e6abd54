"""Where a supervisor asks how a run is: ``/live``, ``/ready`` and ``/lag``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bettong.engine.net.access import ListenConfig
from bettong.engine.net.http import TEXT, Answer, HttpListener
from bettong.engine.sources.base import StreamSource
from bettong.engine.state.manifest import Manifest

_PATIENCE_S = 2.0
"""For how long a source may keep whoever asks for the lag waiting."""


class Health(HttpListener):
    """How one start of a run is.

    ``/live`` is 200 until the run has failed; ``/ready`` is 200 while batches can be done: from
    when its sinks have let it in until it ends; ``/lag`` says for each stream how many messages are
    done, how many have come, and how many wait. Everything else is 503, with the reason in the
    body.

    Raises:
        UsageError: the address is not safe or cannot be had.
    """

    def __init__(self, access: ListenConfig, sources: Mapping[str, StreamSource]) -> None:
        self._sources = sources
        self._done: dict[str, int] = {}
        self._batch = -1
        self._why_not_ready = "it is starting"
        self._failure = ""
        self._asking = ThreadPoolExecutor(1, "bettong-lag")
        super().__init__(access, "bettong-health")

    def ready(self) -> None:
        """Batches can be done from now on."""
        self._why_not_ready = ""

    def ending(self) -> None:
        """No batch is begun from now on."""
        self._why_not_ready = "it is ending"

    def batch(self, manifest: Manifest) -> None:
        """A batch is done."""
        self._batch, self._done = manifest.batch, dict(manifest.offsets)

    def failed(self, error: BaseException) -> None:
        """The run goes no further."""
        self._failure = f"{type(error).__name__}: {error}"

    def close(self) -> None:
        super().close()
        self._asking.shutdown(wait=False, cancel_futures=True)

    def respond(self, path: str) -> Answer:
        match path:
            case "/live":
                return _as_json(self._failure, {"live": not self._failure})
            case "/ready":
                why = self._failure or self._why_not_ready
                return _as_json(why, {"ready": not why})
            case "/lag":
                return self._lag()
        return 404, TEXT, b"there are /live, /ready and /lag\n"

    def _lag(self) -> Answer:
        try:
            came = self._asking.submit(self._came).result(_PATIENCE_S)
        except Exception as e:  # whatever keeps a source from answering
            return _as_json(
                f"a source does not answer: {str(e) or 'too slow'}", {"batch": self._batch}
            )
        streams = {
            name: {"done": (done := self._done.get(name, 0)), "came": end, "lag": end - done}
            for name, end in came.items()
        }
        return _as_json("", {"batch": self._batch, "streams": streams})

    def _came(self) -> dict[str, int]:
        return {name: source.extent(0, 0.0).end for name, source in self._sources.items()}


def _as_json(why: str, value: Mapping[str, Any]) -> Answer:
    body = json.dumps({**value, **({"why": why} if why else {})}).encode() + b"\n"
    return (503 if why else 200), "application/json", body
