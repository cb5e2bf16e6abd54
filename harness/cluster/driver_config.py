"""What a driver is told of a run, as the engine takes it; the same for every runner."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bettong.engine import Application
from bettong.engine.address import Address
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.batching import BY_NUMBER
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink, kept_as
from bettong.engine.names import load_class
from bettong.engine.net.client import Patience
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import TwoPhaseSink
from bettong.engine.sinks.files import FileSink
from bettong.engine.sinks.kafka import KafkaSink
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.state.manifest import current_epoch
from bettong.harness.scenario import Inputs, Outputs

_ALL = 1_000_000
INDEX = "index"
"""The folder of a checkpoint that has the numbers of messages in files."""
"""Versions of the state, and notes of batches, which the oracle of a live run reads."""


def configurations(versions: Sequence[str], **job: Any) -> Sequence[tuple[Application, RunConfig]]:
    """The versions of an application that are left, each to be run until its streams have ended,
    before the next one is: a driver that is started again goes on with the one after that which
    was begun last.

    Args:
        versions: ``module:attribute`` of each.
        job: what else :func:`configure` is told.
    """
    every = [configure(application, **job) for application in versions]
    begun = current_epoch(every[-1][1].store)
    return every[min(begun, len(every) - 1) :]


def configure(
    application: str,
    inputs: Inputs,
    outputs: Outputs,
    servers: Mapping[str, str],
    topics: str,
    folders: Mapping[str, str],
    shared: str,
    checkpoint: str,
    batch: int,
    live: bool,
    partitions: int,
    classes: Mapping[str, str],
    timeout_s: float,
    give_up_s: float,
) -> tuple[Application, RunConfig]:
    """The application and how it is run.

    Args:
        application: ``module:attribute``.
        inputs, outputs: where messages come from and outputs go, as of a scenario.
        servers: ``HOST:PORT`` of those that these need, as the driver finds them.
        topics: what the names of Kafka's topics begin with.
        folders: where the files of each stream are, if that is where messages come from.
        shared: a folder for files, or for what waits for Kafka, each sink with one of its own.
        batch: messages of each stream in a micro-batch.
        live: whether batches close by time too.
        classes: what replaces the right classes, see :class:`bettong.harness.scenario.Scenario`.
        timeout_s: seconds that gateway and receiver have for an answer.
        give_up_s: seconds over all attempts.
    """
    module, _, name = application.partition(":")
    app: Application = getattr(importlib.import_module(module), name)
    waiting = Patience(timeout_s, give_up_s)

    def source(name: str) -> GatewaySource | DirectorySource | KafkaSource:
        if inputs == "folder":
            return DirectorySource(Path(folders[name]), Path(checkpoint) / INDEX / name)
        if inputs == "kafka":
            return KafkaSource(servers["kafka"], f"{topics}.{name}", end="now")
        return GatewaySource(Address.parse(servers["gateway"]), name, patience=waiting)

    def sink(name: str) -> TwoPhaseSink:
        if outputs == "files":
            return load_class(classes.get("sink", FileSink), FileSink)(Path(shared) / name)
        if outputs == "arrow":
            return load_class(classes.get("sink", ArrowSink), ArrowSink)(Path(shared) / name)
        if outputs == "kafka":
            own = load_class(classes.get("sink", KafkaSink), KafkaSink)
            return own(servers["kafka"], f"{topics}.{name}", Path(shared) / name)
        found = load_class(classes.get("sink", TcpSink), TcpSink)
        return found(Address.parse(servers["receiver"]), kept_as(app, name), patience=waiting)

    return app, RunConfig(
        Path(checkpoint),
        {node.name: source(node.name) for node in app.sources},
        {node.name: sink(node.name) for node in app.sinks},
        batch_messages=batch,
        batch_wait_s=None if live else BY_NUMBER,
        keep_versions=_ALL if live else RunConfig.keep_versions,
        one_task_messages=RunConfig.one_task_messages if live else 0,
        state_partitions=partitions,
        batch_class=classes.get("protocol", BatchProtocol),
    )
