"""What the driver hands to the tasks of one batch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bettong.engine import steps
from bettong.engine.graph import Application
from bettong.engine.sinks.base import TwoPhaseSink
from bettong.engine.state.manifest import Manifest
from bettong.engine.state.store import Store


@dataclass(frozen=True)
class Job:
    """Everything that a task needs to know of its batch.

    Attributes:
        app: the application.
        batch: Spark's id of the batch.
        epoch: which start of the query runs it.
        partitions: number of state partitions.
        base: the state before the batch.
        store: where state files are.
        sinks: by name.
        instrumentation: how tasks record their steps.
        options: for tasks of the user's own classes.
        measure: whether tasks report how long they took.
        streams: how many there are.
    """

    app: Application
    batch: int
    epoch: int
    partitions: int
    base: Manifest
    store: Store
    sinks: Mapping[str, TwoPhaseSink]
    instrumentation: steps.Instrumentation
    options: Mapping[str, Any] = field(default_factory=dict)
    measure: bool = False
    streams: int = 1

    def step_id(self, partition: int, attempt: int, name: str, level: int = 1) -> str:
        """Step id of what one task attempt does; levels after the first are named."""
        where = f"batch={self.batch}" if level <= 1 else f"batch={self.batch}/level={level}"
        return f"{where}/p={partition}/a={attempt}/{name}"

    def sink_step(self, name: str, sink: str) -> str:
        """Step name of what is done at a sink, which is named when there are several."""
        return name if len(self.sinks) == 1 else f"{name}/{sink}"


def install(instrumentation: steps.Instrumentation) -> None:
    """Make a task's process record its steps.

    The environment names the node of a worker's process; without it tasks run where the driver is.
    """
    node = os.environ.get(steps.ENV_NODE) or instrumentation.node
    incarnation = (
        instrumentation.incarnation
        if node == instrumentation.node
        else int(os.environ.get(steps.ENV_INCARNATION) or 1)
    )
    steps.install(instrumentation.on(node, incarnation))
