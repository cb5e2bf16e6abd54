"""A Hypothesis state machine of the engine: an application on the in-process runner, killed and
started again wherever it hurts, against the sequential interpreter::

    class OrdersMachine(EngineMachine):
        applications = st.just(orders.pipeline.app)
        messages = st.builds("account{} {}".format, st.integers(0, 3), st.integers(0, 99)).map(
            str.encode
        )

    TestOrders = OrdersMachine.TestCase

Messages come in, the engine runs and is killed: at a step of the trace, at any change of its
disk, or while it waits. Then it starts again, with other numbers of partitions and messages in a
batch, from what a killed process or a power failure left on the disk. After each kill every sink
shows whole batches and nothing twice; in the end all that was sent is there, and the state agrees.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import event, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from bettong.engine import Application, interpret, steps
from bettong.engine.batch.protocol import BatchProtocol
from bettong.engine.ids import parse_id
from bettong.engine.in_process import run_in_process
from bettong.engine.interpreter import Interpretation
from bettong.engine.keys import canonical, hash_bytes
from bettong.engine.node import Node, reached_by_state
from bettong.engine.state.entities import FileCache, load
from bettong.engine.state.query import version
from bettong.engine.storage.simulated import Image
from bettong.harness.checkers import Record, check_outputs, check_state
from bettong.harness.strategies.pipelines import numbers, pipelines
from bettong.harness.strategies.state_machine_parts import (
    CrashPoint,
    Fuse,
    FuseInstrumentation,
    Killed,
    MachineConfig,
    MachineStore,
    MemorySink,
    MemorySource,
)
from bettong.lineage.results import Anomaly

LOG = Path("/log")
MOMENTS = 60


class EngineMachine(RuleBasedStateMachine):
    """Subclass it with an application of your own; as it is, it draws random pipelines.

    Attributes:
        applications: strategy of applications; each has a sink at least.
        messages: strategy of what their sources read.
        sink: makes what stands for a sink; it lives on when the engine is killed.
        protocol: the driver's side of a batch.
    """

    applications: ClassVar[st.SearchStrategy[Application]] = pipelines()
    messages: ClassVar[st.SearchStrategy[bytes]] = numbers()
    sink: ClassVar[type[MemorySink]] = MemorySink
    protocol: ClassVar[type[BatchProtocol]] = BatchProtocol

    def __init__(self) -> None:
        super().__init__()
        self.app: Application | None = None
        self.image: Image = {}
        self.good = True

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.app = app = data.draw(self.applications, "application")
        note("\n".join(str(node) for node in app.nodes))
        self.sources = {n.name: MemorySource(n.name) for n in app.sources}
        self.sinks = {n.name: self.sink() for n in app.sinks}

    @rule(
        data=st.data(),
        kind=st.sampled_from(["step", "disk"]),
        moments=st.integers(0, MOMENTS),
        left=st.integers(0, 100),
        partitions=st.integers(1, 3),
        batch=st.integers(1, 4),
    )
    def run_and_kill(
        self,
        data: st.DataObject,
        kind: CrashPoint,
        moments: int,
        left: int,
        partitions: int,
        batch: int,
    ) -> None:
        """Messages arrive, and the engine runs until it is killed, or has nothing to do and is
        killed then.

        Args:
            left: which of the images that the crash may have left is found at the next start: 0
                for a killed process, all others for power failures.
        """
        for name, source in self.sources.items():
            source.messages += data.draw(st.lists(self.messages, max_size=6), name)
        fuse = Fuse(self.image, kind, moments)
        self.good = False
        with contextlib.suppress(Killed):
            self._run(fuse, partitions, batch)
        assert fuse.found is not None
        self.image = fuse.found[left % len(fuse.found)]
        how = "killed" if left % len(fuse.found) == 0 else "power failure"
        event(f"{how}, {'idle' if fuse.last == 'idle' else kind}")
        note(f"{how}: {fuse.last}")
        self._judge(self._shown_batches())
        self.good = True

    def teardown(self) -> None:
        """All streams end, and nobody kills the last run."""
        if self.app is None or not self.good:
            return
        for source in self.sources.values():
            source.ended = True
        fuse = Fuse(self.image)
        store = self._run(fuse, 2, 3)
        batches = self._shown_batches()
        expected = self._judge(batches)
        sent = {name: len(source.messages) for name, source in self.sources.items()}
        if any(sent.values()):
            assert batches[-1] == sent, f"shown up to {batches[-1]}, sent {sent}"
            self._raise(self._state_anomalies(store, expected))

    def _run(self, fuse: Fuse, partitions: int, batch: int) -> MachineStore:
        assert self.app is not None
        for source in self.sources.values():
            source.fuse = fuse
        store = MachineStore(LOG, fuse.disk)
        config = MachineConfig(
            LOG.parent / "no-such-folder",
            self.sources,
            self.sinks,
            batch_messages=batch,
            state_partitions=partitions,
            keep_versions=2,
            instrumentation=FuseInstrumentation(node="driver", fuse=fuse),
            batch_class=self.protocol,
            machine_store=store,
        )
        try:
            run_in_process(self.app, config)
        finally:
            steps.install(steps.Instrumentation())
        return store

    def _shown_batches(self) -> list[dict[str, int]]:
        """How far each batch read that some sink shows."""
        found: list[dict[str, int]] = []
        ends = dict.fromkeys(self.sources, 0)
        reported = {n: e for sink in self.sinks.values() for n, e in sink.ends.items()}
        assert sorted(reported) == list(range(len(reported))), (
            f"a batch is missing: {sorted(reported)}"
        )
        for number in range(len(reported)):
            ends = ends | reported[number]
            found.append(ends)
        return found

    def _judge(self, batches: list[dict[str, int]]) -> Interpretation:
        """Every sink shows what the interpreter gives for the batches that it has."""
        assert self.app is not None
        last = batches[-1] if batches else dict.fromkeys(self.sources, 0)
        streams = {name: source.messages[: last[name]] for name, source in self.sources.items()}
        expected = interpret(self.app, streams, batches)
        for node in self.app.sinks:
            sink = self.sinks[node.name]
            assert sorted(sink.committed) == list(range(len(sink.committed))), sorted(sink.ends)
            ends = batches[len(sink.committed) - 1] if sink.committed else {}
            wanted = [
                _record(node, o.id, o.key, o.data)
                for o in expected.outputs
                if o.sink == node.name and _before(o.id, ends)
            ]
            seen = [
                _record(node, row.id, row.key, row.data, batch)
                for batch, rows in sorted(sink.committed.items())
                for row in rows
            ]
            self._raise(check_outputs(wanted, seen).anomalies)
        return expected

    def _state_anomalies(self, store: MachineStore, expected: Interpretation) -> list[Anomaly]:
        assert self.app is not None
        files, cache = version(store).files, FileCache(store)
        found: list[Anomaly] = []
        for state in self.app.states:
            entities = expected.state[state.name]
            keys = [canonical(key) for key in entities]
            of_state = [f for f in files if f.state == state.name]
            stored = load(state, cache, of_state, keys, [hash_bytes(key) for key in keys])
            names = [f"{state.name} of {key!r}" for key in entities]
            pairs = (dict(zip(names, e, strict=True)) for e in (entities.values(), stored))
            found += check_state(*pairs)
        return found

    def _raise(self, anomalies: tuple[Anomaly, ...] | list[Anomaly]) -> None:
        assert not anomalies, "\n".join(map(str, anomalies))


def _record(node: Node, ident: str, key: Any, data: bytes, batch: int | None = None) -> Record:
    """Rows of one key are in order, or else those of one stream where nothing moved them."""
    place = None
    if node.keyed:
        place = f"{type(key).__name__} {key!r}"
    elif node.operation != "dead_letters" and not reached_by_state(node):
        place = parse_id(ident).stream
    return Record(ident, place, data, batch)


def _before(ident: str, ends: dict[str, int]) -> bool:
    """Whether the message that an output comes from is in these batches."""
    message = parse_id(ident)
    return message.number < ends.get(message.stream, 0)
