"""The museum's list: each real bug or trap, where it lives, and what is there to see it by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_JOBS = "bettong.scenarios.museum.jobs"
_NO_WRAPPER = "fixed; needs a wrapper around Spark that brings it back, which is not built"
_OTHER = "needs a connector for another Spark or another engine, which is not built"
_FILES = "needs the checkpoint to be damaged between two runs, which is not built"
_CLUSTER = "needs two executors, and jobs are checked with one"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One bug or trap.

    Attributes:
        id: its public id, or a short name for what users ask again and again.
        title: symptom and trigger.
        target: the job that shows it, for check-job; empty when there is none.
        shown: a word of the result's reason, told envelope or words by which it is recognised.
        why_not: why there is none.
    """

    id: str
    title: str
    target: str = ""
    shown: str = ""
    why_not: str = ""


def _list() -> Iterator[Exhibit]:
    def shown(id: str, title: str, job: str, word: str) -> Exhibit:
        return Exhibit(id, title, f"{_JOBS}:{job}", word)

    yield shown(
        "SPARK-28650",
        "foreach's (partition, epoch) as a key of what is written: a replay partitioned otherwise "
        "loses rows or has them twice",
        "PartitionAndEpoch",
        "fault set",
    )
    yield shown(
        "SPARK-47329",
        "several actions in foreachBatch compute the batch anew: what is not deterministic differs",
        "TwoActions",
        "without any fault",
    )
    yield shown(
        "SPARK-52008",
        "foreachBatch reads a part of a batch of a query with state: it stands still",
        "PartOfTheBatch",
        "fails without any fault",
    )
    yield shown(
        "SPARK-PR-56043",
        "no delay: rows equal to the watermark are dropped when a batch ends between them",
        "EqualToTheWatermark",
        "too late",
    )
    yield shown(
        "SPARK-58904",
        "left outer join: a match comes after the row without one",
        "LateMatch",
        "cut",
    )
    yield shown(
        "foreachBatch-replay",
        "a replayed batch is inserted again",
        "Replayed",
        "minimal fault set",
    )
    for id, title, why in (
        ("SPARK-56461", "file checksums with checkpoint format v1: stands still", _FILES),
        ("SPARK-54307", "an empty state folder: stands still, misleadingly", _FILES),
        ("SPARK-55058", "a lost metadata file, another query id: duplicates", _FILES),
        ("SPARK-55892", "an SST deleted by another executor's maintenance", _CLUSTER),
        ("SPARK-PR-52209", "two maintainers, orphans removed", _CLUSTER),
        ("SPARK-56720", "asynchronous progress: a commit without offsets", _FILES),
        ("SPARK-50046", "AvailableNow, sources in turn: stands still", _OTHER),
        ("SPARK-56564", "speculation: a denied commit counts as a failure", _CLUSTER),
        ("Paimon-9666", "crash before commits/N: duplicates", _OTHER),
        ("Iceberg-10156", "stream-from-timestamp beats the checkpoint: loss", _OTHER),
        ("Iceberg-8609", "names of data files used again: loss and duplicates", _OTHER),
        ("HUDI-4389", "a replayed batch: duplicates", _OTHER),
        ("Delta-548", "a restart reads nearly all again: duplicates", _OTHER),
        ("Delta-PR-6314", "a trailing commit vanishes: loss", _OTHER),
        ("Paimon-8205", "a restart drops an offset", _OTHER),
        ("SPARK-43404", "RocksDB, a task tried again on one executor", _NO_WRAPPER),
        ("SPARK-47036", "compaction races commit", _NO_WRAPPER),
        ("SPARK-52637", "compaction, mapping of files", _NO_WRAPPER),
        ("SPARK-51717", "a second snapshot after a failed batch", _NO_WRAPPER),
        ("SPARK-46711", "a cancelled task rolls back another's store", _NO_WRAPPER),
        ("SPARK-48105", "unload races snapshot", _NO_WRAPPER),
        ("SPARK-51682", "format v2: offsets ahead of commits", _NO_WRAPPER),
        ("SPARK-51573", "format v2: checkpoint id race", _NO_WRAPPER),
        ("SPARK-18342", "a rename fails silently", _NO_WRAPPER),
        ("SPARK-26425", "two runs, an unguarded commit log", _NO_WRAPPER),
        ("SPARK-24453", "a crash in a batch without data", _NO_WRAPPER),
        ("SPARK-24699", "the watermark is lost over Trigger.Once", _NO_WRAPPER),
        ("SPARK-38320", "an iterator misses its own writes", _NO_WRAPPER),
        ("SPARK-26154", "outer join: a row without a match for a matched one", _NO_WRAPPER),
        ("SPARK-38204", "the state's partition is not the key's", _NO_WRAPPER),
        ("SPARK-49699", "an operator is dropped in an empty batch", _NO_WRAPPER),
        ("SPARK-59315", "keys of a deduplication gain a column", _NO_WRAPPER),
        ("SPARK-41375", "Kafka answers no partitions", _NO_WRAPPER),
        ("SPARK-53560", "AvailableNow, a partition is added", _NO_WRAPPER),
    ):
        yield Exhibit(id, title, why_not=why)


EXHIBITS = tuple(_list())
