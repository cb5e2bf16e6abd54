"""Toxiproxy in a container, on the host's network, from an image that is there already."""

from __future__ import annotations

from typing import Any

_ENGINE_SECONDS = 5


def _engine() -> Any:
    import docker  # not at the top: it takes long to import, and most runs need none

    return docker.from_env(timeout=_ENGINE_SECONDS)


def local_image() -> str | None:
    """The tag of a Toxiproxy image that the container engine has; None without engine or image.

    Nothing is pulled."""
    try:
        tags = [tag for image in _engine().images.list() for tag in image.tags]
    except Exception:  # the SDK's errors have no common root: no engine, no right to use it …
        return None
    return next((tag for tag in sorted(tags) if _repository(tag) == "toxiproxy"), None)


def _repository(tag: str) -> str:
    """``host:5000/group/toxiproxy:2.12.0`` → ``toxiproxy``."""
    return tag.rpartition("/")[2].partition(":")[0]


class Container:
    """A running Toxiproxy container."""

    def __init__(self, image: str, host: str, port: int) -> None:
        self._container = _engine().containers.run(
            image,
            [f"-host={host}", f"-port={port}", "-proxy-metrics"],
            network_mode="host",
            detach=True,
            labels={"bettong": "toxiproxy"},
        )

    def failure(self) -> str | None:
        """Why it is not running; None while it is."""
        self._container.reload()
        if self._container.status in ("created", "running"):
            return None
        return str(self._container.logs(tail=5).decode(errors="replace"))

    def stop(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._container.remove(force=True)
