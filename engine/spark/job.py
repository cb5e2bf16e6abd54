"""A run of an application as one call with plain arguments, for drivers that are started from
outside, such as a supervisor's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import kept_as
from bettong.engine.graph import Application
from bettong.engine.names import load_object
from bettong.engine.net.client import Patience
from bettong.engine.resilience import GIVES_UP
from bettong.engine.spark.runner import run
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(
    spark: SparkSession,
    application: str,
    sources: Mapping[str, str],
    sinks: Mapping[str, str],
    checkpoint: str,
    messages_per_batch: int | None = None,
    state_partitions: int = 4,
    read_slices: int = 2,
    batch_class: str = "bettong.engine.batch.protocol:BatchProtocol",
    source_class: str = "bettong.engine.endpoints:GatewaySource",
    sink_class: str = "bettong.engine.endpoints:TcpSink",
    patience: Mapping[str, float] | None = None,
    options: Mapping[str, Any] | None = None,
    resilience: bool = True,
    batch_wait_s: float | None = None,
) -> dict[str, Any]:
    """Run an application until its streams have ended and all is counted, visible and released.

    Args:
        spark: the session.
        application: ``module:attribute`` of the :class:`Application`.
        sources: HOST:PORT of the gateway for each stream.
        sinks: HOST:PORT of the receiver for each sink.
        checkpoint: folder of the checkpoint; the same one goes on where the last run ended.
        messages_per_batch: how many messages of each stream make a batch at most; by default what
            the application says.
        state_partitions: how many tasks apply state.
        read_slices: how many tasks read a stream's share of a batch.
        batch_class: a class derived from ``BatchProtocol``.
        source_class: a class derived from ``GatewaySource``.
        sink_class: a class derived from ``TcpSink``.
        patience: ``timeout_s`` and ``give_up_s`` of lost connections.
        options: for classes of the user's own.
        resilience: whether the run can go on after a crash.
        batch_wait_s: after how many seconds a message's batch closes with what there is; by default
            what the application says, and ``math.inf`` for batches by number alone.

    Returns:
        ``{"batches": number of batches done so far, "gives_up": what is not promised}``
    """
    app = load_object(application)
    if not isinstance(app, Application):
        raise UsageError(f"{application} is not an Application")
    waiting = Patience(**patience) if patience else Patience()
    make_source, make_sink = load_object(source_class), load_object(sink_class)
    config = RunConfig(
        Path(checkpoint),
        {
            stream: make_source(Address.parse(where), stream, patience=waiting)
            for stream, where in sources.items()
        },
        {
            name: make_sink(Address.parse(where), kept_as(app, name), patience=waiting)
            for name, where in sinks.items()
        },
        batch_messages=messages_per_batch,
        batch_wait_s=batch_wait_s,
        state_partitions=state_partitions,
        read_slices=read_slices,
        batch_class=batch_class,
        options=options or {},
        resilience=resilience,
    )
    batches = run(app, spark, config).await_drained()
    return {"batches": batches, "gives_up": [] if resilience else list(GIVES_UP)}
