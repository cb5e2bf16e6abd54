"""What a driver is told of a run, as the engine takes it; the same for every runner."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from bettong.engine import Application
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink, kept_as
from bettong.engine.names import load_class
from bettong.engine.net.doors import Address
from bettong.engine.outputs.files import FileSink
from bettong.engine.sinks import TwoPhaseSink


def configure(
    application: str,
    streams: Sequence[str],
    gateway: str,
    receiver: str,
    files: str | None,
    checkpoint: str,
    batch: int,
    partitions: int,
    classes: Mapping[str, str],
) -> tuple[Application, RunConfig]:
    """The application and how it is run.

    Args:
        application: ``module:attribute``.
        streams: what the gateway has.
        gateway, receiver: ``HOST:PORT`` as the driver finds them.
        files: the folder in which each sink has one of its own; with None the receiver is the sink.
        batch: messages of each stream in a micro-batch.
        classes: what replaces the right classes, see :class:`bettong.harness.scenario.Scenario`.
    """
    module, _, name = application.partition(":")
    app: Application = getattr(importlib.import_module(module), name)

    def sink(name: str) -> TwoPhaseSink:
        if files is not None:
            return load_class(classes.get("sink", FileSink), FileSink)(Path(files) / name)
        return TcpSink(Address.parse(receiver), kept_as(app, name))

    return app, RunConfig(
        Path(checkpoint),
        {stream: GatewaySource(Address.parse(gateway), stream) for stream in streams},
        {node.name: sink(node.name) for node in app.sinks},
        batch_messages=batch,
        state_partitions=partitions,
        batch_class=classes.get("protocol", BatchProtocol),
    )
