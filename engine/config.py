"""How an application is run, on whichever runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bettong.engine import steps
from bettong.engine.batch.protocol import BatchProtocol, Settings
from bettong.engine.batching import Batching
from bettong.engine.errors import AheadError
from bettong.engine.graph import Application
from bettong.engine.health import Health
from bettong.engine.metrics.config import Metrics
from bettong.engine.metrics.observer import Observer
from bettong.engine.names import load_class
from bettong.engine.net.access import ListenConfig
from bettong.engine.resilience import UnsyncedDisk, begin
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import TwoPhaseSink
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import StreamSource
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.sources.lines import number_anew
from bettong.engine.spark.notes import SparkNotes
from bettong.engine.state.compatible import check_compatible
from bettong.engine.state.manifest import newest_batch, read_manifest
from bettong.engine.state.planned import newest_fixed
from bettong.engine.state.store import LocalStore, Store
from bettong.engine.storage.disk import OS_DISK
from bettong.lineage.errors import UsageError


@dataclass(frozen=True)
class RunConfig:
    """Where an application's messages come from and go to, and how it is run.

    Attributes:
        checkpoint: folder that the driver and all workers share. ``spark/`` in it is Spark's
            checkpoint, ``state/`` the state log. To an application belongs one checkpoint.
        sources: for each stream of the application where its messages come from.
        sinks: for each sink of the application where its outputs go to.
        batch_messages: how many messages of each stream make a batch at most; by default what the
            application says.
        batch_wait_s: after how many seconds a message's batch closes with what there is; by default
            what the application says. See :class:`bettong.engine.batching.Batching`.
        state_partitions: how many tasks apply state; may change between runs.
        one_task_messages: a batch of no more messages is one task on Spark, which takes longer to
            schedule several than these take for so few; 0 for as many tasks as there are slices
            and state partitions, however few they are. To be well above what comes during a batch
            of several tasks: else one such batch is followed by others.
        keep_versions: how many of the last batches' states can be read again; two at least, since
            the last batch may have to be done again from the state before it.
        read_slices: how many tasks read a stream's share of a batch.
        poll_s: seconds for which planning waits for messages at a time.
        instrumentation: how steps are recorded; by default as in this process.
        batch_class: the protocol of a batch, a class or ``module:Class``.
        resilience: whether the run can go on after a crash; what is given up without is in
            :data:`bettong.engine.resilience.GIVES_UP`, and printed.
        metrics: where the run's figures go; nothing is measured without.
        health: where a supervisor asks how the run is, see :class:`bettong.engine.health.Health`.
        state: where the state log is, such as :class:`bettong.engine.state.s3.S3Store`; by default
            in the checkpoint.
        options: for a batch class of the user's own.
    """

    checkpoint: Path
    sources: Mapping[str, StreamSource | KafkaSource]
    sinks: Mapping[str, TwoPhaseSink]
    batch_messages: int | None = None
    batch_wait_s: float | None = None
    state_partitions: int = 4
    read_slices: int = 2
    one_task_messages: int = 5_000
    keep_versions: int = 10
    poll_s: float = 0.2
    instrumentation: steps.Instrumentation = field(default_factory=steps.installed)
    batch_class: type[BatchProtocol] | str = BatchProtocol
    options: Mapping[str, Any] = field(default_factory=dict)
    resilience: bool = True
    metrics: Metrics | None = None
    state: Store | None = None
    health: ListenConfig | None = None

    @property
    def spark_checkpoint(self) -> Path:
        return self.checkpoint / "spark"

    @property
    def store(self) -> Store:
        if self.state is not None:
            return self.state
        disk = OS_DISK if self.resilience else UnsyncedDisk()
        return LocalStore(self.checkpoint / "state", disk)

    def batching(self, app: Application) -> Batching:
        """When batches close; raises UsageError when a number is out of range."""
        own = app.batching
        return Batching(
            own.messages if self.batch_messages is None else self.batch_messages,
            own.wait_s if self.batch_wait_s is None else self.batch_wait_s,
        )

    def begin(self, app: Application) -> BatchProtocol:
        """The protocol of the batches of a start of the application.

        Raises:
            UsageError: see :meth:`check`; or the checkpoint cannot be gone on with.
        """
        cls = self.check(app)
        number_anew()
        topics = {name for name, s in self.sources.items() if isinstance(s, KafkaSource)}
        check_compatible(app, self.store, topics)
        self.expect_known_batches()
        settings = self.settings(app)
        try:
            begin(self.checkpoint, self.store, self.resilience)
        except BaseException:
            if settings.observer is not None:
                settings.observer.close()
            if settings.health is not None:
                settings.health.close()
            raise
        return cls(settings)

    def expect_known_batches(self) -> None:
        """Raises AheadError where a folder has batches that the state does not know of: those to
        come have their numbers, and would be taken for made already and lost without a word.

        Folders can be looked at before anything is begun; other sinks are told when they are
        opened how far the state is.
        """
        for name, sink in self.sinks.items():
            if isinstance(sink, FileSink | ArrowSink):
                found = sink.newest_batch()  # first: a batch is fixed before it is visible
                newest = max(newest_fixed(self.store), self._last_planned)
                if found > newest:
                    raise AheadError.of(f"sink {name}={sink.directory}", newest)

    @property
    def _last_planned(self) -> int:
        return SparkNotes(self.spark_checkpoint).last_planned

    def streams(self) -> dict[str, StreamSource]:
        """The streams that the sources are: one each, or one for each partition of a topic.

        Raises:
            UsageError: there is no such topic, or two streams have one name.
        """
        found: dict[str, StreamSource] = {}
        for name, source in self.sources.items():
            if not isinstance(source, KafkaSource):
                found[name] = source
                continue
            partitions = source.partitions(name, self.store)
            if clash := sorted(partitions.keys() & {*self.sources, *found}):
                raise UsageError(f"{clash[0]} is a source and a partition of {name}: rename one")
            found |= partitions
        return found

    def settings(self, app: Application) -> Settings:
        """What the protocol of a batch is told; see :meth:`streams` for the errors."""
        streams = self.streams()
        return Settings(
            app,
            self.store,
            self.state_partitions,
            self.sinks,
            self.instrumentation,
            self.options,
            self.keep_versions if self.resilience else 2,
            streams=streams,
            last_planned=self._last_planned,
            observer=None if self.metrics is None else Observer(self.metrics, streams),
            health=self._health(app, streams),
        )

    def _health(self, app: Application, streams: Mapping[str, StreamSource]) -> Health | None:
        if self.health is None:
            return None
        last = read_manifest(self.store, app.name, newest_batch(self.store))
        health = Health(self.health, streams)
        health.batch(last)
        return health

    def check(self, app: Application) -> type[BatchProtocol]:
        """The class of the batches' protocol.

        Raises:
            UsageError: sources or sinks do not match the application, a number is out of range,
                or there is no such class.
        """
        for what, wanted, given in (
            ("sources", {n.name for n in app.sources}, set(self.sources)),
            ("sinks", {n.name for n in app.sinks}, set(self.sinks)),
        ):
            if wanted != given:
                raise UsageError(
                    f"application {app.name} has the {what} {sorted(wanted)}, "
                    f"the run was given {sorted(given)}: give each of them once"
                )
        for state in app.states:
            if state.consistency == "available":
                raise UsageError(
                    f"state {state.name} is available, and here each key has one home that all "
                    "its messages need: run a site of EventEngine each, or make it per-key"
                )
        self.batching(app)
        least = {
            "state_partitions": 1,
            "read_slices": 1,
            "keep_versions": 2,
            "one_task_messages": 0,
        }
        for name, lowest in least.items():
            if getattr(self, name) < lowest:
                raise UsageError(f"{name} must be at least {lowest}, got {getattr(self, name)}")
        return load_class(self.batch_class, BatchProtocol)
