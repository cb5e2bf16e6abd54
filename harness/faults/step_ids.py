"""The grammar of step ids: what a step's name says of it. Nobody else takes one apart.

A *shape* is a step id with every number as ``N`` and every stream's name as ``STREAM``, and
without the name of a source or sink at its end: ``batch=3/sink.commit`` has the shape
``batch=N/sink.commit``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

FAULT = "fault/"
"""Before the id of a fault, in the harness's own note of it in a trace."""
NODE_START = "node.start/"
"""Before the name of a node, in the note that it was started."""
REPLAY = "replay/"
"""What begins the check after a run that a replay changes nothing."""

CONCURRENT = "concurrent"
"""The word in steps that are taken beside the thread of a batch; which of them comes first is
chance."""

_PART = re.compile(r"([a-z]+)=(0|[1-9]\d*)\Z")
_NUMBER = re.compile(r"(?<==)\d+")
_FILE = re.compile(r"sink\.file=(\d+)\.(\w+)\Z")
_WITH_MESSAGE = re.compile(
    r"(?P<head>(?:sender|gateway)\.[A-Za-z_-]+)/(?P<stream>[^/]+)(?:/(?P<number>\d+|end))?$"
)

# Where an application has several sources or sinks, the step ends in the name of one; what makes
# the ledger of one in that of the application at the receiver.
_NAMED_END = re.compile(
    r"(?P<step>.*/(?:source|sink)\.[a-z]+|receiver\.[a-z]+(?:/[a-z]+=\d+)+|receiver\.create)"
    r"/(?P<name>[A-Za-z_][\w.-]*)$"
)

# A push is not answered.
_PUSHES = ("sender.send/", "gateway.ack/")

# Steps that begin something: nothing before them in the run has to have happened.
# Who makes a server begin a stream or an application, its sender or a driver, is a matter of the
# clock.
_OF_SERVERS = r"(?:gateway|receiver)\.(?:start$|create/)"
_ROOTS = re.compile(rf"sender\.(?:connect|send)/|metadata$|epoch=\d+/|node\.start/|{_OF_SERVERS}")

# What comes ahead of any batch, and again amid each.
_AHEAD = re.compile(rf"sender\.connect/|{_OF_SERVERS}")

# What Spark notes itself, of which no call to the disk is reported.
_NOTED_BY_SPARK = r"batch=\d+/(?:offsets|commits|_spark_metadata.*)$|metadata$|source=\d+/log=\d+$"
_SPARKS = re.compile(_NOTED_BY_SPARK)

# What stays when every process is gone: who reads it later cannot know which try wrote it.
_DURABLE = re.compile(
    r"(?:sender\.forget|gateway\.(?:create|append|release)|receiver\.\w+)/"
    r"|batch=\d+/(?:source\.note|state\.manifest)$"
    f"|{_NOTED_BY_SPARK}"
)

# What needs a disk that takes it.
_STORED = re.compile(
    r"(?:gateway\.(?:create|append|release)|receiver\.\w+)/"
    r"|batch=\d+/(?:source\.note|offsets|state\.manifest|commits|_spark_metadata.*|stage=.*/task)$"
    r"|batch=\d+/(?:level=\d+/)?p=\d+/a=\d+/state\.write$"
    r"|batch=\d+/p=\d+/state\.merge$"
    r"|metadata$|epoch=\d+/take$"
)
_SINK = re.compile(r"batch=\d+/.*\bsink\.")

# What a process only learns is gone with it.
_READS = re.compile(
    r"batch=\d+/(?:source\.plan.*|p=\d+/a=\d+/(?:part=\d+/)?source\.read|stage=.*/task)$"
)

_WITHIN_TASK = re.compile(r"batch=\d+/(?:level=\d+/)?p=\d+/a=\d+/\S+$")
_CONCURRENT_TASK = f"batch=N/{CONCURRENT}/stage=N/p=N/a=N/task"
_LOGS = ("offsets", "commits", "_spark_metadata")


@dataclass(frozen=True)
class StepId:
    """A step id by its parts, e.g. ``batch=3/p=0/a=1/sink.prepare``: each is ``NAME=NUMBER``, or a
    word: what is done, or a stream and a message's number.

    Parsing the same text again is cheap, and so is asking the same again: searches do both for
    every step of every trace.

    Attributes:
        parts: a number's name and the number, or a word and None.
    """

    parts: tuple[tuple[str, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> StepId:
        """The parts of any step id; ``str`` of it is the same text again."""
        return _parsed(text)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return "/".join(name if n is None else f"{name}={n}" for name, n in self.parts)

    # --- its parts

    def number(self, name: str) -> int | None:
        """The first number of this name."""
        return next((n for part, n in self.parts if part == name and n is not None), None)

    @cached_property
    def batch(self) -> int | None:
        """The micro-batch."""
        return self.number("batch")

    @cached_property
    def stage(self) -> int | None:
        """The stage of a task."""
        return self.number("stage")

    @cached_property
    def partition(self) -> int | None:
        """The partition of a task, or of what it does."""
        return self.number("p")

    @cached_property
    def attempt(self) -> int | None:
        """The attempt at that."""
        return self.number("a")

    @cached_property
    def part(self) -> int | None:
        """The part of what it moves, where one request does not hold it all."""
        return self.number("part")

    @property
    def whole(self) -> StepId:
        """The step of all its parts, within which this one is taken; itself where it is none."""
        return StepId(tuple(part for part in self.parts if part[0] != "part"))

    def of_attempt(self, number: int) -> str:
        """The same step of another attempt at its task."""
        return self._text.replace(f"/a={self.attempt}/", f"/a={number}/", 1)

    @cached_property
    def epoch(self) -> int | None:
        """The run of the query between restarts."""
        return self.number("epoch")

    @property
    def last(self) -> str:
        """Its last word or the name of its last number, e.g. ``commits``, ``task``."""
        return self.parts[-1][0]

    @cached_property
    def unnamed(self) -> str:
        """The step without the name of a source or sink at its end."""
        named = _NAMED_END.match(self._text)
        return named["step"] if named else self._text

    @property
    def name(self) -> str:
        """The name of a source or sink at its end; empty when there is none."""
        return self._text[len(self.unnamed) + 1 :]

    @cached_property
    def message(self) -> tuple[str, str] | None:
        """The stream and the number, or ``end``, of the message that a step of the sender or the
        gateway names; None for other steps."""
        named = _WITH_MESSAGE.match(self._text)
        return (named["stream"], named["number"]) if named and named["number"] else None

    @property
    def stream(self) -> str | None:
        """The stream that a step of the sender or the gateway names; None for other steps."""
        named = _WITH_MESSAGE.match(self._text)
        return named["stream"] if named else None

    @property
    def within_batch(self) -> str:
        """What stands behind the batch that it begins with."""
        return self._text.partition("/")[2]

    @cached_property
    def file(self) -> tuple[int, str] | None:
        """The number and the name of a sink's file operation; None for other steps."""
        found = _FILE.match(self.last)
        return (int(found[1]), found[2]) if found else None

    @cached_property
    def shape(self) -> str:
        """Its shape; what fits no known pattern keeps its letters."""
        named = _WITH_MESSAGE.match(self._text)
        if named:
            return f"{named['head']}/STREAM" + ("/N" if named["number"] is not None else "")
        return _NUMBER.sub("N", self.unnamed)

    def with_number(self, name: str, number: int) -> StepId:
        """The same step with this number for those of this name."""
        return StepId(
            tuple((n, number if n == name and x is not None else x) for n, x in self.parts)
        )

    # --- tasks

    @cached_property
    def task(self) -> tuple[int, int, int] | None:
        """Batch, partition and attempt of what a task's attempt is or does; None for other
        steps."""
        if self.batch is None or self.partition is None or self.attempt is None:
            return None
        return self.batch, self.partition, self.attempt

    @cached_property
    def is_task(self) -> bool:
        """Whether it is a task's attempt."""
        return self.shape in ("batch=N/stage=N/p=N/a=N/task", _CONCURRENT_TASK)

    @cached_property
    def is_concurrent(self) -> bool:
        """Whether it is taken beside the thread of its batch."""
        return (CONCURRENT, None) in self.parts

    @cached_property
    def is_within_task(self) -> bool:
        """Whether it is taken in the course of a task's attempt."""
        return _WITHIN_TASK.match(self._text) is not None

    # --- what it leaves

    @cached_property
    def is_durable(self) -> bool:
        """Whether, once done, it leaves a fact that outlives the process that took it."""
        return _DURABLE.match(self._text) is not None

    @cached_property
    def is_read(self) -> bool:
        """Whether by itself it changes nothing but what its process knows."""
        return _READS.match(self._text) is not None

    @cached_property
    def is_noted_by_spark(self) -> bool:
        """Whether it writes one of Spark's own notes."""
        return _SPARKS.match(self._text) is not None

    def is_stored(self, link: str | None) -> bool:
        """Whether the process that takes it writes to its disk in it; a sink that is no other
        node writes itself."""
        return bool(_STORED.match(self._text) or (link is None and _SINK.match(self._text)))

    @cached_property
    def is_checkpoint_file(self) -> bool:
        """Whether it writes a file of Spark's checkpoint, or of a file sink's log."""
        here = self.source_log is not None or self.is_state_file or self.is_written_once
        return here or self.last in _LOGS

    @cached_property
    def source_log(self) -> int | None:
        """The number of an entry in a source's own log."""
        return self.number("log") if self.shape == "source=N/log=N" else None

    @cached_property
    def is_state_file(self) -> bool:
        """Whether it writes a file of the state."""
        return self.shape.startswith("batch=N/state/op=N/p=N/")

    @property
    def is_written_once(self) -> bool:
        """Whether it writes what a query writes once, before its first batch."""
        return self.shape in ("metadata", "state/op=N/metadata")

    # --- what it is

    @cached_property
    def is_root(self) -> bool:
        """Whether nothing before it in the run has to have happened."""
        return _ROOTS.match(self._text) is not None

    @property
    def begins_epoch(self) -> bool:
        """Whether it belongs to the beginning of an epoch."""
        return self.parts[0][0] == "epoch"

    @property
    def ends_batch(self) -> bool:
        """Whether Spark notes in it that a batch is done."""
        return self.last == "commits"

    @property
    def is_wait(self) -> bool:
        """Whether it asks when the wait of a batch ends."""
        return self.last == "source.wait"

    @property
    def connects(self) -> bool:
        """Whether a sender connects in it."""
        return self._text.startswith("sender.connect/")

    @cached_property
    def is_ahead(self) -> bool:
        """Whether it comes ahead of any batch: a server starts, or makes room for a client who is
        new, or a sender connects, which it does again wherever a connection is lost."""
        return _AHEAD.match(self._text) is not None

    @property
    def starts(self) -> bool:
        """Whether a server opens in it what is on its disk, before anybody can ask it."""
        return self._text in ("gateway.start", "receiver.start")

    @property
    def is_push(self) -> bool:
        """Whether it sends something that is not answered."""
        return self._text.startswith(_PUSHES)


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> StepId:
    def part(word: str) -> tuple[str, int | None]:
        found = _PART.match(word)
        return (found[1], int(found[2])) if found and len(found[2]) < 19 else (word, None)

    return StepId(tuple(map(part, text.split("/"))))


# --- counted from a fault

_BATCH = re.compile(r"batch=(\d+)")
_EPOCH = re.compile(r"epoch=(\d+)")
_BATCH_FROM = re.compile(r"batch=\+(-?\d+)")
_EPOCH_FROM = re.compile(r"epoch=\+(-?\d+)")


def counted_from(step: str, batch: int | None, epoch: int) -> str:
    """A step, and what stands behind it, with batch and epoch counted from these."""
    if batch is not None:
        step = _BATCH.sub(lambda m: f"batch=+{int(m[1]) - batch}", step)
    return _EPOCH.sub(lambda m: f"epoch=+{int(m[1]) - epoch}", step)


def counted_on(step: str, batch: int | None, epoch: int) -> str:
    """The step that :func:`counted_from` says, counted on from these."""
    step = _BATCH_FROM.sub(lambda m: f"batch={int(m[1]) + (batch or 0)}", step)
    return _EPOCH_FROM.sub(lambda m: f"epoch={int(m[1]) + epoch}", step)
