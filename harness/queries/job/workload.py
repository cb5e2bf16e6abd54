"""A job as runs see it: fed step by step, in a variant, with what the day brings."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bettong.harness.faults.step_ids import StepId
from bettong.harness.queries.faults.operations import LONGER, OperationalEvent
from bettong.harness.queries.job.contract import Job
from bettong.harness.queries.job.feed import (
    FOLDER,
    Feed,
    FileSender,
    Sender,
    TopicSender,
    closed_at_the_end,
    in_more_steps,
    merged,
    repeated,
)
from bettong.harness.queries.job.host import CALL
from bettong.harness.queries.job.inputs import StepInput, Topic
from bettong.harness.queries.run.incarnations import INCARNATION_S
from bettong.harness.queries.run.job import Target
from bettong.lineage.trace import TraceEvent

_MORE_INCARNATIONS = 4
_WIDENED = 2
"""The step before which topics get more partitions."""
_OTHER_PARTITIONS = {
    # A row or two of a file is a part, so that rows change places, and state keeps its partitions.
    "spark.sql.files.maxPartitionBytes": "64",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.shuffle.partitions": "3",
}


@dataclass(frozen=True)
class Variant:
    """A way to run a job without faults.

    Attributes:
        name: as results have it.
        merge: so many steps at once.
        at_least: the same rows in so many steps, where they are fewer.
        joined: of these steps the ones from the first of two numbers to before the other are one,
            for each two.
        stop_after: the query is stopped in good order after so many steps, and started again.
        settings: of the session.
    """

    name: str
    merge: int = 1
    at_least: int = 0
    joined: Sequence[tuple[int, int]] = ()
    stop_after: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


PLAIN = Variant("the same twice")
MORE_STEPS = Variant("twelve steps", at_least=LONGER.at_least["batches"])
FEWER_STEPS = (
    replace(MORE_STEPS, name="the first four of twelve steps at once", joined=((0, 4),)),
    replace(MORE_STEPS, name="the last four of twelve steps at once", joined=((8, 12),)),
)
"""Fewer than ten batches: rows come apart in one of them at each place where they do in twelve."""
FEW_STEPS = (
    replace(MORE_STEPS, name="the last nine of twelve steps at once", joined=((3, 12),)),
    *(
        replace(
            MORE_STEPS,
            name=f"all of twelve steps at once but {first + 1} and {first + 2}",
            joined=((0, first), (first + 2, 12)),
        )
        for first in (3, 5, 7)
    ),
    replace(MORE_STEPS, name="the first nine of twelve steps at once", joined=((0, 9),)),
)
"""As few batches as jobs are fed in unless they say otherwise: each of the twelve is a batch by
itself in one of these runs."""
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
OTHERS = {
    "merged": Variant("two steps a batch", merge=2),
    "partitions": Variant(
        "other shuffle partitions", settings={"spark.sql.shuffle.partitions": "5"}
    ),
    "restart": Variant("a restart between batches", stop_after=2),
    "rocksdb": Variant(
        "RocksDB state", settings={"spark.sql.streaming.stateStore.providerClass": _ROCKSDB}
    ),
}


@dataclass
class JobWorkload:
    """One job and its inputs.

    Attributes:
        brokers: for topics, addresses that no proxy is before.
        nonce: in the names of topics, where the broker outlives the check.
        most_incarnations: a query that ends after each step is started for each of them.
    """

    target: Target
    job: Job
    brokers: Mapping[str, str]
    nonce: str = ""
    variant: Variant = PLAIN
    call: str = CALL
    most_incarnations: int = 0
    patience_s: float = INCARNATION_S
    added: str = ""
    _feed: Feed | None = None
    _paths: Mapping[str, str] = field(default_factory=dict)
    _topics: Mapping[str, str] = field(default_factory=dict)
    _event: OperationalEvent = field(default_factory=lambda: OperationalEvent("", ""))
    _folder: Path = Path()
    _state: Path = Path()
    _read: Sequence[TopicSender] = ()
    _crashed: bool = False

    @property
    def feed(self) -> Feed:
        """Of the present run."""
        assert self._feed is not None
        return self._feed

    def begin(self, run: str, state: Path, event: OperationalEvent) -> None:
        """A new run: nothing is fed yet."""
        folder = state.with_name(f"{run}-{FOLDER}")
        inputs = self.job.inputs
        self._event = event
        self._paths = {
            name: str(folder / name)
            for name, given in inputs.items()
            if isinstance(given, StepInput) and not isinstance(given, Topic)
        }
        self._topics = {
            name: "-".join(part for part in (given.name, self.nonce, run) if part)
            for name, given in inputs.items()
            if isinstance(given, Topic)
        }
        self._folder, self._state = folder, state
        fed = {name: given for name, given in inputs.items() if isinstance(given, StepInput)}
        if at_least := event.at_least.get("batches", self.variant.at_least):
            joined = self.variant.joined
            steps = {name: in_more_steps(given, at_least, joined) for name, given in fed.items()}
        else:
            steps = {name: merged(given, self.variant.merge) for name, given in fed.items()}
        if event.repeat is not None:
            steps = {name: repeated(each, event.repeat) for name, each in steps.items()}
        senders = self.senders()
        self._feed = Feed(closed_at_the_end(steps, inputs), senders, self.checkpoint(state))
        self._read = [sender for sender in senders.values() if isinstance(sender, TopicSender)]
        self.added, self._crashed = "", False
        if event.more_partitions and event.crash is None:
            self.feed.before[_WIDENED] = self._widen
        self.most_incarnations = self.feed.total + _MORE_INCARNATIONS

    def senders(self) -> dict[str, Sender]:
        """What puts the steps of each input in place."""
        found: dict[str, Sender] = {}
        for name, given in self.job.inputs.items():
            if isinstance(given, Topic):
                broker = self.brokers[given.server]
                found[name] = TopicSender(self._topics[name], broker, given.partitions, given.key)
            elif isinstance(given, StepInput):
                found[name] = FileSender(self._folder / name, given.file_format, given.schema)
        return found

    def checkpoint(self, state: Path) -> Path | None:
        """Where the job is told to keep it."""
        return state / "checkpoint"

    def starts(self, incarnation: int) -> None:
        """Before the first start, and where the query has consumed all that there was, the next
        step is put in place."""
        stops = self.variant.stop_after or self._event.at_first.get("batches")
        self.feed.limit = stops if incarnation == 1 else None
        if self._crashed and self._event.more_partitions and not self.added:
            self._widen()
        self.feed.advance()

    def _widen(self) -> None:
        self.added = ", ".join(sender.widen() for sender in self._read)

    def arguments(self, incarnation: int, layout: int, anew: bool) -> Mapping[str, Any]:
        """Where the inputs are, and settings: other ones at a replay."""
        settings = dict(self.variant.settings)
        if layout and incarnation > 1:
            settings |= _OTHER_PARTITIONS
        return {
            "target": asdict(self.target),
            "paths": self._paths,
            "topics": self._topics,
            "settings": settings,
        }

    def observe(self, event: TraceEvent) -> None:
        """The next step follows the record of the batch that consumed the last one."""
        crash = self._event.crash
        if crash is not None and crash.is_of(event):
            self._crashed = True
        if event.phase == "after" and StepId.parse(event.step).ends_batch:
            self.feed.advance()

    def endless(self, facts: Iterable[Mapping[str, Any]]) -> bool:
        """Whether it goes on for ever, by what its incarnations report."""
        return any(each.get("endless") for each in facts)

    def drained(self, committed: int, failed: bool) -> bool:
        """All was consumed, and the query went on until it had nothing left to do."""
        return not failed and self.feed.done

    def in_vain(self) -> str:
        """Why it is not waited for any longer: it does not consume what it is fed."""
        return self.feed.in_vain()

    def end(self) -> None:
        """The run is over."""
        self.feed.close()
        shutil.rmtree(self._folder, ignore_errors=True)
