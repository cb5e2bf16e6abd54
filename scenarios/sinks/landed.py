"""Rows that are landed as messages of a stream, and read from there as an application does."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.engine.sources.landed import LandedFolder
from bettong.engine.sources.landing import Landing
from bettong.harness.queries.sink.contract import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class Landed(Sink):
    """The engine's way to take what any streaming query reads."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        lines = rows.selectExpr("to_json(struct(id, key, seq, value)) AS message")
        writer = lines.writeStream.foreachBatch(Landing(self._folder(env)))
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        landed = LandedFolder(self._folder(env))
        extent = landed.extent()
        return map(json.loads, landed.read(extent.begin, extent.end).to_pylist())

    @staticmethod
    def _folder(env: Environment) -> Path:
        return env.workdir / "landed"
