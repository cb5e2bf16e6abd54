"""What a driver is told of a run, as the engine takes it; the same for every runner."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from bettong.engine import Application
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink
from bettong.engine.net.doors import Address


def configure(
    application: str,
    stream: str,
    gateway: str,
    receiver: str,
    checkpoint: str,
    batch: int,
    partitions: int,
    classes: Mapping[str, str],
) -> tuple[Application, RunConfig]:
    """The application and how it is run.

    Args:
        application: ``module:attribute``.
        gateway, receiver: ``HOST:PORT`` as the driver finds them.
        batch: messages in a micro-batch.
        classes: what replaces the right classes, see :class:`bettong.harness.scenario.Scenario`.
    """
    module, _, name = application.partition(":")
    app: Application = getattr(importlib.import_module(module), name)
    (sink,) = app.sinks
    return app, RunConfig(
        Path(checkpoint),
        {stream: GatewaySource(Address.parse(gateway), stream)},
        {sink.name: TcpSink(Address.parse(receiver), app.name)},
        batch_messages=batch,
        state_partitions=partitions,
        batch_class=classes.get("protocol", BatchProtocol),
    )
