"""Whatever Spark reads as a stream, made a stream of an application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from bettong.engine.sources.landed import LandedFolder
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUERY = "sql.streaming.queryId"


@dataclass(frozen=True)
class Landing:
    """What ``foreachBatch`` is given so that a query's rows become messages: the frame has one
    column, text or binary, and each row is one message.

    A micro-batch that is done again changes nothing. That its first version holds each row once is
    up to Spark and the query's source: one that Spark can ask for the same rows again.

    Attributes:
        folder: for this query alone; a :class:`~bettong.engine.sources.landed.LandedSource` reads
            it.
    """

    folder: Path

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Keep a micro-batch. Raises UsageError for a frame that has other columns or a row
        without a value, for a folder of another query, and outside of a streaming query."""
        query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY)
        if query is None:
            raise UsageError("a Landing is called by Spark: give it to writeStream.foreachBatch")
        self._folder.put(query, batch_id, _messages(batch, batch_id))

    def end(self) -> None:
        """End the stream, after the query has stopped for good, such as one that was triggered
        by ``availableNow``. Without it the stream never ends."""
        self._folder.end()

    @property
    def _folder(self) -> LandedFolder:
        return LandedFolder(self.folder)


def _messages(batch: DataFrame, batch_id: int) -> pa.Array:
    types = [f"{name} {kind}" for name, kind in batch.dtypes]
    if len(types) != 1 or batch.dtypes[0][1] not in ("string", "binary"):
        raise UsageError(
            f"a Landing takes frames of one column, text or binary, and this one has "
            f"{', '.join(types) or 'none'}: select one, such as to_json(struct(*))"
        )
    rows = batch.toArrow().column(0).combine_chunks()
    if rows.null_count:
        raise UsageError(
            f"{rows.null_count} rows of micro-batch {batch_id} have no value, so that they cannot "
            "be messages: filter them out, or give them one"
        )
    return rows.cast(pa.binary())
