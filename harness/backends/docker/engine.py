"""The container engine, and what of ours is in it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psutil

from bettong.lineage.errors import BettongError, UsageError

OWNER = "bettong.owner"
_SECONDS = 60
_REMOVAL_S = 20.0


class EngineError(BettongError):
    """The container engine did not do what it was asked."""


def engine_address() -> str:
    """Where the engine is."""
    return os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")


def connect(seconds: float) -> Any:
    """A client of an engine that answers; raises DockerException."""
    import docker  # not at the top: it takes long to import, and most runs need none

    client = docker.from_env(timeout=seconds)
    client.ping()
    return client


@contextlib.contextmanager
def engine() -> Iterator[Any]:
    """A client of the engine that ``DOCKER_HOST`` names, or of the usual one; what Bettong
    processes that are gone have left in it is removed first.

    Raises UsageError when no engine of this machine answers.
    """
    from docker.errors import DockerException

    where = engine_address()
    if not where.startswith("unix://"):
        raise UsageError(
            f"--backend docker: the engine at DOCKER_HOST={where} may be another machine's; nodes "
            "share folders and addresses with this one: name a unix:// socket"
        )
    try:
        client = connect(_SECONDS)
    except DockerException as e:
        raise UsageError(
            f"--backend docker: no engine answers at {where} ({_last_words(e)}): start one, as "
            "root `systemctl start docker` or `dockerd &`, or name another with DOCKER_HOST"
        ) from e
    try:
        remove_leftovers(client)
        yield client
    except DockerException as e:
        raise EngineError(f"the container engine at {where} failed: {e}") from e
    finally:
        client.close()


def owner() -> str:
    """This process, as no other can be called: what everything of ours is labelled with."""
    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def remove_leftovers(client: Any) -> None:
    """Remove the containers and networks of owners that live no more; what cannot be removed yet,
    because it is just being started, is tried again for a while."""
    deadline = time.monotonic() + _REMOVAL_S
    while left := list(_leftovers(client)):
        for remove in left:
            remove()
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


def _leftovers(client: Any) -> Iterator[Callable[[], None]]:
    """What removes each of them."""
    made = {"label": OWNER}
    for container in client.containers.list(all=True, filters=made, ignore_removed=True):
        if not _lives(container.labels[OWNER]):
            yield partial(_remove, partial(container.remove, force=True))
    for network in client.networks.list(filters=made):
        if not _lives(network.attrs["Labels"][OWNER]):
            yield partial(_remove, network.remove)


def _remove(remove: Callable[[], None]) -> None:
    from docker.errors import APIError

    with contextlib.suppress(APIError):  # not yet, or another Bettong that starts now is quicker
        remove()


def _lives(label: str) -> bool:
    pid, _, since = label.partition("@")
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == since
    except (psutil.NoSuchProcess, ValueError):
        return False


def _last_words(error: Exception) -> str:
    """The innermost reason of an error of the SDK, which nests them in one another's text."""
    seen: BaseException = error
    while seen.__cause__ or seen.__context__:
        seen = seen.__cause__ or seen.__context__  # type: ignore[assignment]
    return getattr(seen, "strerror", None) or str(seen)
