"""A source of the user's own, a Python data source that decides itself what a batch is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from bettong.harness import Bag, Job, Recorded
from bettong.scenarios.jobs.outputs import started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Offset = dict[str, int]
ROWS, PER_BATCH = 12, 3


class Numbers(SimpleDataSourceStreamReader):
    """Numbered rows, a few at a time; the same ones for the same offsets."""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"at": 0}

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        end = {"at": min(start["at"] + PER_BATCH, ROWS)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802 - Spark's name
        self, start: Offset, end: Offset
    ) -> Iterator[tuple[str]]:
        return iter([(f"r{n}",) for n in range(start["at"], end["at"])])


class Api(DataSource):
    """An interface that is asked again and again for what is new."""

    @classmethod
    def name(cls) -> str:
        return cls.__name__.lower()

    def schema(self) -> str:
        return "id STRING"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return Numbers()


class Polled(Job):
    """Each batch into a file of its own, which its replay writes again."""

    inputs = {"rows": Recorded(Api)}  # noqa: RUF012
    compare = Bag("id")

    @staticmethod
    def oracle(inputs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Each row of the source once."""
        return [{"id": f"r{n}"} for n in range(ROWS)]

    def transform(self, env: Any) -> DataFrame:
        rows: DataFrame = env.input("rows")
        return rows

    def write(self, df: DataFrame, env: Any) -> StreamingQuery:
        def each(batch: DataFrame, batch_id: int) -> None:
            aside = env.workdir / f"{batch_id}.new"
            aside.write_text("".join(f"{line}\n" for line in batch.toJSON().collect()))
            aside.rename(env.workdir / f"{batch_id}.json")

        return started(df, env, each)

    def read(self, env: Any) -> list[dict[str, Any]]:
        files = sorted(env.workdir.glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
