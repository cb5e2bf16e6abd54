"""What is asked of a run's metrics."""

from __future__ import annotations

import warnings
from dataclasses import InitVar, dataclass
from pathlib import Path

from bettong.engine.net.access import ListenConfig


@dataclass(frozen=True)
class Metrics:
    """Where the figures of a run go.

    Attributes:
        file: one line of JSON is appended for each batch, and one for what Spark says of it.
        listen: where Prometheus may ask for them: at ``/metrics``; a token is given as
            ``Authorization: Bearer TOKEN``. Beyond loopback it needs TLS and a token or client
            certificates.
        door: what ``listen`` was called.
    """

    file: Path | None = None
    listen: ListenConfig | None = None
    door: InitVar[ListenConfig | None] = None

    def __post_init__(self, door: ListenConfig | None) -> None:
        if door is not None:
            warnings.warn("Metrics(door=…) is Metrics(listen=…) now", DeprecationWarning, 3)
            object.__setattr__(self, "listen", door)
