"""The in-process runner: an application without Spark, in this process alone.

It runs the same batches through the same protocol as the Spark runner, one task after the other,
and goes on where its checkpoint ends. There is no log of Spark's: the manifests say how far each
batch read, and the last batch is done again at the start, since its sinks may not have heard of
its commit.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from bettong.engine import steps
from bettong.engine.batch.job import Job
from bettong.engine.batch.local import execute
from bettong.engine.batch.planning import come_to
from bettong.engine.batch.protocol import BatchProtocol, Report
from bettong.engine.config import RunConfig
from bettong.engine.errors import MissingError
from bettong.engine.graph import Application
from bettong.engine.net.errors import RefusedError
from bettong.engine.sources.base import beginnings
from bettong.engine.state.manifest import newest_batch, read_manifest
from bettong.lineage.trace import MessageRange


def run_in_process(app: Application, config: RunConfig, stop: threading.Event | None = None) -> int:
    """Run an application until its streams have ended and all is counted, visible and released.

    Args:
        stop: once it is set, the run ends after the batch at hand; the next start goes on there.

    Returns:
        How many batches the application has done since its beginning.

    Raises:
        UsageError: sources or sinks do not match the application, or a number is out of range.
        MissingError: a source no longer has what the application has taken of it.
        UserFunctionError: a user's function failed, and the application does not go on.
        FencedError: the application has been started again elsewhere.
    """
    protocol = config.begin(app)
    steps.install(config.instrumentation)
    try:
        protocol.open()
        return _Runner(app, config, protocol, stop or threading.Event()).drain()
    except BaseException as e:
        if protocol.settings.health is not None:
            protocol.settings.health.failed(e)
        raise
    finally:
        protocol.close()


class _Runner:
    def __init__(
        self, app: Application, config: RunConfig, protocol: BatchProtocol, stop: threading.Event
    ) -> None:
        self._app = app
        self._config = config
        self._protocol = protocol
        self._stop = stop
        self._streams = protocol.settings.streams
        self._planner = protocol.planner(
            self._streams, config.store, config.batching(app), config.poll_s
        )

    def drain(self) -> int:
        batch, ends = self._resume()
        while not self._stop.is_set():
            planned = self._planner.plan(batch, ends)
            if planned is not None:
                self._batch(batch, ends, planned)
                batch, ends = batch + 1, planned
            elif self._ended(ends):
                break
        return batch

    def _resume(self) -> tuple[int, Mapping[str, int]]:
        """The number of the next batch and where it begins."""
        start = beginnings(self._streams)
        done = newest_batch(self._config.store)
        if done < 0:
            return 0, start
        before = start | self._offsets(done - 1)
        known = self._planner.known(done)
        ends = before | (self._offsets(done) if known is None else dict(known.ends))
        if not self._is_gone(before, ends):
            try:
                self._batch(done, before, ends)
                return done + 1, ends
            except (MissingError, RefusedError):
                if not self._is_gone(before, ends):
                    raise  # else the one before had stood still, and let go of them meanwhile
        self._release(done, ends)
        return done + 1, ends

    def _is_gone(self, before: Mapping[str, int], ends: Mapping[str, int]) -> bool:
        """Whether messages of the last batch are no longer there. Then they were released, which
        is done when every sink has committed the batch: it need not be done again."""
        streams = self._streams.items()
        return any(come_to(name, s, ends[name]).begin > before[name] for name, s in streams)

    def _offsets(self, batch: int) -> dict[str, int]:
        return dict(read_manifest(self._config.store, self._app.name, batch).offsets)

    def _batch(self, batch: int, before: Mapping[str, int], ends: Mapping[str, int]) -> None:
        def run_tasks(job: Job) -> list[Report]:
            return execute(
                self._protocol.tasks,
                job,
                _ranges(before, ends),
                self._streams,
                self._config.read_slices,
            )

        self._protocol.run(batch, run_tasks)
        self._release(batch, ends)

    def _release(self, batch: int, ends: Mapping[str, int]) -> None:
        sink_step = self._protocol.sink_step
        causes = [sink_step(f"batch={batch}/sink.commit", sink) for sink in self._config.sinks]
        for stream, stop in ends.items():
            if stop:
                step = self._planner.step_id(batch, "source.commit", stream)
                self._streams[stream].release(stop, step, causes)

    def _ended(self, ends: Mapping[str, int]) -> bool:
        extents = (s.extent(ends[n] + 1, 0) for n, s in self._streams.items())
        return all(
            extent.ended and extent.end == end
            for extent, end in zip(extents, ends.values(), strict=True)
        )


def _ranges(before: Mapping[str, int], ends: Mapping[str, int]) -> list[MessageRange]:
    return [
        MessageRange(stream, before[stream], stop)
        for stream, stop in ends.items()
        if before[stream] < stop
    ]
