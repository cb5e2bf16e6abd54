"""Bugs of sources, each brought back at its step in a source of numbered rows: where a source goes
on when its query was started again, and what it takes for the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)

from bettong.harness import Recorded
from bettong.scenarios.museum.polled import PER_BATCH, ROWS, Api, Numbers, Offset, Polled


class _OffsetDropped(Numbers):
    def __init__(self) -> None:
        self._begun = False

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        at = start["at"]
        skipped = 0 if self._begun or at in (0, ROWS) else 1
        self._begun = True
        rows, end = super().read(start)
        return (self.readBetweenOffsets({"at": at + 1}, end) if skipped else rows), end


class _DropsAnOffset(Api):
    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return _OffsetDropped()


class OffsetDropped(Polled):
    """A source that begins one place after the recorded one when its query is started again."""

    inputs = {"rows": Recorded(_DropsAnOffset)}  # noqa: RUF012


class _Range(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class _PlaceInMemory(DataSourceStreamReader):
    """Knows where it is from the ranges that it was asked to plan."""

    def __init__(self) -> None:
        self._place = 0

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {"at": 0}

    def latestOffset(self, *ignored: Any) -> Offset:  # noqa: N802 - Spark's name
        return {"at": min(self._place + PER_BATCH, ROWS)}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        self._place = end["at"]
        return [_Range(min(start["at"], end["at"] - PER_BATCH), end["at"])]

    def read(self, partition: Any) -> Iterator[tuple[str]]:
        return iter([(f"r{n}",) for n in range(partition.start, partition.end)])


class _ForgetsItsPlace(Api):
    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        raise NotImplementedError

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _PlaceInMemory()


class PlaceForgotten(Polled):
    """A source that knows its place from what it was asked to plan: a restart that has no batch to
    plan again leaves it at its beginning, and it reads nearly all once more."""

    inputs = {"rows": Recorded(_ForgetsItsPlace)}  # noqa: RUF012


class _NoPartitions(Numbers):
    """A broker that is moving its partitions answers once that there are none."""

    def __init__(self) -> None:
        self._asked = 0

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        self._asked += 1
        if self._asked == 3:
            return iter(()), {}
        return super().read({"at": start.get("at", 0)})

    def readBetweenOffsets(  # noqa: N802 - Spark's name
        self, start: Offset, end: Offset
    ) -> Iterator[tuple[str]]:
        return super().readBetweenOffsets({"at": start.get("at", 0)}, {"at": end.get("at", 0)})


class _TakesNoneForAll(Api):
    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return _NoPartitions()


class NoPartitions(Polled):
    """A source that records an answer without partitions as an offset: the next batch takes all of
    them for new ones, from the earliest row on."""

    inputs = {"rows": Recorded(_TakesNoneForAll)}  # noqa: RUF012
