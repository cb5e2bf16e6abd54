"""The museum's list: each real bug or trap, where it lives, and what is there to see it by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_MUSEUM = "bettong.scenarios.museum"
_FIXED = "mended: its job has what once brought it about"
_COMPACTION = "RocksDB's own compaction would have to be held between two of its steps"
_TWO = "needs two executors that have the state, and jobs are checked with one"
_CONNECTOR = "its connector is for Spark 4.1, on which it is not run yet"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One bug or trap.

    Attributes:
        id: its public id, or a short name for what users ask again and again.
        title: symptom and trigger.
        target: the job that shows it, for check-job; empty when there is none.
        shown: a word of the result's reason, told envelope or words by which it is recognised;
            empty when it is tried, and not there.
        note: how it is there, or why it is not.
    """

    id: str
    title: str
    target: str = ""
    shown: str = ""
    note: str = ""

    @property
    def tried(self) -> str:
        """``found``, ``not found`` or ``not tried``."""
        if not self.target:
            return "not tried"
        return "found" if self.shown else "not found"


_HERE = "lives in Spark today"
_BACK = "brought back at its step in a table or a source of its own"
_TRIED = (
    (
        "SPARK-28650",
        "foreach's (partition, epoch) as a key of what is written: a replay partitioned otherwise "
        "loses rows or has them twice",
        "jobs:PartitionAndEpoch",
        "minimal fault set",
        _HERE,
    ),
    (
        "SPARK-47329",
        "several actions in foreachBatch compute the batch anew: what is not deterministic differs",
        "jobs:TwoActions",
        "Nothing went wrong on the way",
        _HERE,
    ),
    (
        "SPARK-52008",
        "foreachBatch reads a part of a batch of a query with state: it stands still",
        "jobs:PartOfTheBatch",
        "fails without any fault",
        _HERE,
    ),
    (
        "SPARK-PR-56043",
        "no delay: rows equal to the watermark are dropped when a batch ends between them",
        "jobs:EqualToTheWatermark",
        "",
        "tried with dropDuplicates: Spark 4.3.0 keeps them",
    ),
    (
        "SPARK-58904",
        "left outer join: a match comes after the row without one",
        "jobs:LateMatch",
        "",
        "tried on Spark 4.3.0: all variants and fault sets give the same rows",
    ),
    (
        "foreachBatch-replay",
        "a replayed batch is inserted again",
        "jobs:Replayed",
        "minimal fault set",
        _HERE,
    ),
    (
        "SPARK-50046",
        "AvailableNow, sources with rows in turn: only the least watermark is kept",
        "checkpoints:SourcesInTurn",
        "Nothing went wrong on the way",
        _HERE,
    ),
    (
        "SPARK-56461",
        "file checksums with checkpoint format v1: stands still",
        "checkpoints:ChecksumsOfFormatOne",
        "",
        "tried on Spark 4.3.0: it goes on after every fault",
    ),
    (
        "SPARK-55058",
        "a lost metadata file, another query id",
        "checkpoints:MetadataLost",
        "metadata",
        "the job's start loses the file; this Spark refuses to go on",
    ),
    (
        "SPARK-54307",
        "an empty state folder: stands still",
        "checkpoints:StateFolderEmpty",
        "state",
        "the job's start loses the folder",
    ),
    (
        "SPARK-51682",
        "format v2: offsets ahead of commits: the query does not start again",
        "fixed:CountsOfFormatTwo",
        "CheckpointInfo",
        "said to be mended; lives in Spark 4.3.0",
    ),
    (
        "Paimon-9666",
        "crash before commits/N: the sink commits a replayed batch again",
        "tables:CommittedAgain",
        "minimal fault set",
        _BACK,
    ),
    (
        "HUDI-4389",
        "a replayed batch is committed again",
        "tables:CommittedAgain",
        "minimal fault set",
        _BACK,
    ),
    (
        "Iceberg-8609",
        "names of data files used again after a restart: loss and duplicates",
        "tables:NamesUsedAgain",
        "minimal fault set",
        _BACK,
    ),
    (
        "SPARK-26425",
        "two runs, an unguarded commit log: a zombie takes away what was committed",
        "tables:UnguardedLog",
        "minimal fault set",
        _BACK,
    ),
    (
        "SPARK-18342",
        "a rename fails silently",
        "tables:RenameUnchecked",
        "minimal fault set",
        _BACK,
    ),
    (
        "SPARK-38204",
        "the state's partition is not the key's, and the plan changes",
        "tables:PartitionOfThePlan",
        "minimal fault set",
        _BACK,
    ),
    (
        "Delta-548",
        "a restart reads nearly all again",
        "sources:PlaceForgotten",
        "minimal fault set",
        _BACK,
    ),
    (
        "Paimon-8205",
        "a restart drops an offset",
        "sources:OffsetDropped",
        "minimal fault set",
        _BACK,
    ),
    (
        "SPARK-41375",
        "Kafka answers no partitions: all is read again",
        "sources:NoPartitions",
        "Nothing went wrong on the way",
        _BACK,
    ),
)
_MENDED = (
    (
        "SPARK-59315",
        "dropDuplicates, and the file of a row after it: the file becomes a part of the key",
        "museum.checkpoints:MetadataOfTheFile",
    ),
    ("SPARK-43404", "RocksDB, a task tried again on one executor", "museum.fixed:CountsOnRocksDB"),
    ("SPARK-51717", "a second snapshot after a failed batch", "museum.fixed:CountsOnRocksDB"),
    ("SPARK-38320", "an iterator misses its own writes", "museum.fixed:SessionsOnRocksDB"),
    ("SPARK-24699", "the watermark is lost over restarts", "museum.fixed:CountsByTheDay"),
    ("SPARK-24453", "a crash in a batch without data", "jobs.windows:Counts"),
    ("SPARK-53560", "AvailableNow, a partition is added", "museum.fixed:CopiedByTheDay"),
    ("SPARK-26154", "outer join: no match for a matched row", "jobs.joins:MatchedOrNot"),
)
_NOT_TRIED = (
    ("format-v1", "a zombie task in the first checkpoint format", _TWO),
    ("SPARK-55892", "an SST deleted by another executor's maintenance", _TWO),
    ("SPARK-PR-52209", "two maintainers, orphans removed", _TWO),
    ("SPARK-51573", "format v2: checkpoint id race", _TWO),
    ("SPARK-56564", "speculation: a denied commit counts as a failure", _TWO),
    (
        "SPARK-56720",
        "asynchronous progress: a commit without offsets",
        "steps need the progress of each batch",
    ),
    ("Iceberg-10156", "stream-from-timestamp beats the checkpoint: loss", _CONNECTOR),
    ("Delta-PR-6314", "a trailing commit vanishes: loss", _CONNECTOR),
    ("SPARK-47036", "compaction races commit", _COMPACTION),
    ("SPARK-52637", "compaction, mapping of files", _COMPACTION),
    (
        "SPARK-46711",
        "a cancelled task rolls back another's store",
        "needs a task cancelled at its commit",
    ),
    ("SPARK-48105", "unload races snapshot", "needs maintenance held between two of its steps"),
    ("SPARK-49699", "an operator is dropped in an empty batch", "needs the optimizer's old rule"),
)


def _list() -> Iterator[Exhibit]:
    for id, title, job, word, note in _TRIED:
        yield Exhibit(id, title, f"{_MUSEUM}.{job}", word, note)
    for id, title, job in _MENDED:
        yield Exhibit(id, title, f"bettong.scenarios.{job}", note=_FIXED)
    for id, title, why in _NOT_TRIED:
        yield Exhibit(id, title, note=why)


EXHIBITS = tuple(_list())
