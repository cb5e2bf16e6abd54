"""What a warm driver host does in a run: one start of an application's query."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.endpoints import GatewaySource, TcpSink
from bettong.engine.net.doors import Address
from bettong.engine.spark.runner import RunConfig, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_query(
    spark: SparkSession,
    application: str,
    stream: str,
    gateway: str,
    receiver: str,
    checkpoint: str,
    batch: int,
    partitions: int,
    classes: dict[str, str],
) -> None:
    """Run the query from where its checkpoint is until its stream has ended and everything of it
    is committed; raises QueryError when it fails.

    Args:
        application: ``module:attribute``.
        gateway, receiver: ``HOST:PORT`` as the driver finds them.
        batch: messages in a micro-batch.
        classes: what replaces the right classes, see :class:`bettong.harness.scenario.Scenario`.
    """
    module, _, name = application.partition(":")
    app = getattr(importlib.import_module(module), name)
    (sink,) = app.sinks
    run(
        app,
        spark,
        RunConfig(
            Path(checkpoint),
            {stream: GatewaySource(Address.parse(gateway), stream)},
            {sink.name: TcpSink(Address.parse(receiver), app.name)},
            batch_messages=batch,
            state_partitions=partitions,
            batch_class=classes.get("protocol", BatchProtocol),
        ),
    ).await_drained()
