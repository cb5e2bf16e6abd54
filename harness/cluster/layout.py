"""The programs of a run's nodes, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bettong.harness.cluster.driver_config import INDEX
from bettong.harness.scenario import Component

DRIVER_JOB = "bettong.harness.cluster.driver_job:run_query"
WARM_UP = "bettong.harness.cluster.driver_job:warm_up"
DRIVER_IMPORTS = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "bettong.harness.spark.python_daemon",
    "bettong.harness.cluster.driver_job",
)
"""What the processes of a driver find imported that are forked."""
DRIVER_PROCESS = "bettong.harness.cluster.driver_process"
SENDER = "bettong.engine.ingest.sender"
GATEWAY = "bettong.engine.ingest.gateway"
RECEIVER = "bettong.engine.receiver.server"
MODULES: dict[Component, str] = {"gateway": GATEWAY, "receiver": RECEIVER}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one run are.

    Attributes:
        folder: all of them.
    """

    folder: Path

    def input(self, stream: str) -> Path:
        """The messages of a stream, one for each line."""
        return self.folder / f"{stream}.input"

    def input_folder(self, stream: str) -> Path:
        """The messages of a stream in files."""
        return self.folder / f"{stream}.files"

    def acked(self, stream: str) -> Path:
        """What the stream's sender was told is safe."""
        return self.folder / f"{stream}.acked"

    def outcome(self, stream: str) -> Path:
        """How the stream's sender ended, in its own words."""
        return self.folder / f"{stream}.outcome"

    @property
    def gateway(self) -> Path:
        """The gateway's journals."""
        return self.folder / "gateway"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint and the engine's state."""
        return self.folder / "checkpoint"

    def index(self, stream: str) -> Path:
        """The numbers of the messages of a stream that comes in files."""
        return self.checkpoint / INDEX / stream

    @property
    def receiver(self) -> Path:
        """The receiver's journal and output."""
        return self.folder / "receiver"

    @property
    def files(self) -> Path:
        """Outputs as files, a folder for each sink."""
        return self.folder / "files"

    @property
    def accounts(self) -> Path:
        """What each node has not made durable yet."""
        return self.folder / "accounts"

    @property
    def kept(self) -> Path:
        """A copy of what the nodes have on their disks, while they are started on it."""
        return self.folder / "kept"

    def log(self, node: str) -> Path:
        """What a node prints."""
        return self.folder / f"{node}.log"
