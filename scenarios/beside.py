"""What goes on beside each other in production, at a moment that is the same in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Report, Settings
from bettong.engine.endpoints import GatewaySource
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.connection import Connection
from bettong.engine.sources.base import Extent
from bettong.engine.sources.directory import DirectorySource, NumberedFile
from bettong.engine.state.inline import InlineExecutor
from bettong.engine.state.manifest import Manifest, current_epoch
from bettong.scenarios.applications import rescaled_sum


class GathersThree(Gateway):
    """Waits for the frames that a sender sends ahead, up to each third message, and makes them
    durable together. A sender comes to such a message before it has to wait; for what comes to
    none, such as a frame that is said again, nobody waits long."""

    most: ClassVar[int] = 3
    patience_s: ClassVar[float] = 2.0

    def has_more(self, connection: Connection, stop: int) -> bool:
        """Whether anything more is to be waited for, and has come."""
        return stop % self.most != 0 and connection.poll(self.patience_s)


class _TakesItsTime(Stream):
    patience_s: ClassVar[float] = 1.0

    def take_over(self, sender: Connection, node: str) -> None:
        super().take_over(sender, node)
        released = self.journal.released
        if self.journal.end >= self.limit:
            with self.changed:
                self.changed.wait_for(lambda: self.journal.released > released, self.patience_s)


class WelcomesLate(Gateway):
    """A sender that comes again while there is no room for more is welcomed when there is."""

    stream_class = _TakesItsTime


class MergingFiles(BatchProtocol):
    """Merges the state files of a partition as soon as there are two, before the next batch begins,
    and keeps no more versions of the state than have to be there."""

    def __init__(self, settings: Settings, executor: Executor | None = None) -> None:
        own = executor or InlineExecutor()
        super().__init__(replace(settings, keep_versions=2, fan_in=2, housekeeping=own))


class RescaledMerging(MergingFiles):
    """The same, with code to which the fields of state mean something else after the first
    restart: what each version has written is merged with what the other one has."""

    def __init__(self, settings: Settings) -> None:
        started = current_epoch(settings.store) > 0
        super().__init__(replace(settings, app=rescaled_sum.versions[started]))


class Later(Executor):
    """Does what it is given when it is told to, at the latest when it is shut down."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take note of it."""
        done: Future[Any] = Future()
        self._waiting.append(lambda: done.set_result(fn(*args, **kwargs)))
        return done

    def work(self) -> None:
        """Do it; raises what it raises."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do what is left, unless nobody waits for it."""
        if wait and not cancel_futures:
            self.work()


class MergingLater(MergingFiles):
    """Merges them, and removes old versions, when it is told to."""

    def __init__(self, settings: Settings) -> None:
        self._later = Later()
        super().__init__(settings, self._later)


class MergingBeside(MergingLater):
    """Does so when the next batch has begun from what is there, before its tasks read it."""

    def job(self, batch: int, base: Manifest) -> Job:
        """What a batch has to do."""
        job = super().job(batch, base)
        self._later.work()
        return job


class MergingApart(MergingLater):
    """Does so when the next batch's tasks have written their files, which nothing names yet, and
    takes up its work after each restart with one state partition more."""

    def __init__(self, settings: Settings) -> None:
        partitions = settings.partitions + current_epoch(settings.store)
        super().__init__(replace(settings, partitions=partitions))

    def manifest(self, job: Job, reports: Sequence[Report]) -> Manifest:
        """The state after the batch."""
        self._later.work()
        return super().manifest(job, reports)


class BegunLongAgo(BatchProtocol):
    """Eight drivers were there before the first one of the run, so that the next has two digits."""

    def take_epoch(self) -> int:
        store = self.settings.store
        if not current_epoch(store):
            store.create("epochs/000008.json", b"{}")
        return super().take_epoch()


@dataclass(frozen=True)
class LookedBefore(DirectorySource):
    """What a driver sees of a folder that has looked right before a file came.

    Attributes:
        came: the file's name.
    """

    came: str = ""

    def new_names(self, files: Sequence[NumberedFile]) -> list[str]:
        """Files to be taken, in order."""
        return [name for name in super().new_names(files) if name != self.came]


class TakenMeanwhile(DirectorySource):
    """A folder whose files another driver takes too. It has looked before the first of them came,
    and takes what it has seen right after this one has looked, which has all of them to take."""

    def new_names(self, files: Sequence[NumberedFile]) -> list[str]:
        """Files to be taken, in order, as long as nobody else does."""
        found = super().new_names(files)
        if found and not files:
            LookedBefore(self.directory, self.index, self.end, found[0]).extent(0, 0.0)
        return found


class FilesTakenMeanwhile(BatchProtocol):
    """Reads folders whose files another driver takes too."""

    def __init__(self, settings: Settings) -> None:
        folders = {
            name: TakenMeanwhile(source.directory, source.index, source.end)
            for name, source in settings.streams.items()
            if isinstance(source, DirectorySource)
        }
        super().__init__(replace(settings, streams={**settings.streams, **folders}))


_ALL = 1 << 40
"""More messages than a stream has."""


@dataclass(frozen=True)
class SeenTooEarly(GatewaySource):
    """A stream as a driver sees it that waits for messages, and is told just before the last of
    them comes that they have not come. When it goes on, all of the stream is there, to its end.

    Attributes:
        patience_s: for how long that is waited for.
    """

    patience_s: ClassVar[float] = 2.0
    _asked: set[int] = field(default_factory=set, compare=False)

    def extent(self, upto: int, wait: float) -> Extent:
        """How far the stream has come; a look that waits for nothing sees all of it."""
        found = super().extent(upto, wait)
        if not wait or upto in self._asked:
            return found
        self._asked.add(upto)
        super().extent(_ALL, self.patience_s)
        return found._replace(end=min(found.end, upto - 1), ended=False)


class LooksTooEarly(BatchProtocol):
    """Looks for the messages of each batch once before they have come."""

    def __init__(self, settings: Settings) -> None:
        seen = {
            name: SeenTooEarly(source.address, source.stream, source.key, source.patience)
            for name, source in settings.streams.items()
            if isinstance(source, GatewaySource)
        }
        super().__init__(replace(settings, streams={**settings.streams, **seen}))
