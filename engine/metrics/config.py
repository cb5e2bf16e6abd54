"""What is asked of a run's metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bettong.engine.net.doors import ListenConfig


@dataclass(frozen=True)
class Metrics:
    """Where the figures of a run go.

    Attributes:
        file: one line of JSON is appended for each batch, and one for what Spark says of it.
        door: where Prometheus may ask for them: at ``/metrics``; a token is given as
            ``Authorization: Bearer TOKEN``. Beyond loopback it needs TLS and a token or client
            certificates.
    """

    file: Path | None = None
    door: ListenConfig | None = None
