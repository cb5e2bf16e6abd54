"""Whatever Spark can write as a sink, through a pattern by which a replayed batch changes nothing.

Workers stage the rows of their attempts in files. The driver makes a data frame of the winners' and
hands it, with the batch's number, to a pattern of :mod:`bettong.engine.sinks.patterns` or
:mod:`bettong.engine.sinks.jdbc`, which says what the whole promises. A driver that passed the fence
just before it was closed can do no harm there: the rows of a batch do not depend on who writes
them, and the pattern lets them be there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bettong.engine.errors import AheadError
from bettong.engine.sinks.base import Noted, Row
from bettong.engine.sinks.patterns import Pattern, Promise
from bettong.engine.sinks.staging import Staging
from bettong.engine.steps import step
from bettong.engine.storage.disk import OS_DISK
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STAGED = "id STRING, key STRING, data STRING, base64 STRING"


@dataclass(frozen=True)
class FormatSink:
    """Rows in a table or in files that Spark writes, on the Spark runner alone.

    The columns are ``id``, ``key`` (text) and ``data`` (bytes); with ``fields`` they are ``id`` and
    the fields. A pattern adds the batch's number as ``batch``.

    Attributes:
        pattern: how a batch is written.
        staging: a directory for this sink alone that driver and workers share.
        fields: columns as Spark writes them, such as ``symbol STRING, price DOUBLE``: each output
            is an object of JSON with these members. One that is not ends the run.
    """

    pattern: Pattern
    staging: Path
    fields: str | None = None

    @property
    def promises(self) -> Promise:
        """What the pattern promises."""
        return self.pattern.promises

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Begin an epoch. Raises FencedError when a newer one has begun, AheadError when there are
        batches after ``newest``, UsageError without a Spark session or when the pattern's target
        is another application's."""
        with step(noted.step, causes=noted.causes):
            spark = _session()
            if newest is not None and self.pattern.has_batches(spark, application, newest):
                raise AheadError.of(self.pattern, newest)
            self._staged.open(application, epoch)
            self.pattern.begin(spark, application)

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Stage rows in a file; durable on return."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staged.check_epoch(epoch)
            self._staged.stage(epoch, batch, partition, attempt, rows)

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Let the pattern write the winners' rows; a batch without any writes nothing."""
        with step(noted.step, causes=noted.causes, carries=noted.carries):
            self._staged.check_epoch(epoch)
            if winners:
                application = self._staged.application(epoch)
                self.pattern.put(self._rows(epoch, batch, winners), application, batch)
            self._staged.forget(batch)

    def _rows(self, epoch: int, batch: int, winners: Mapping[int, int]) -> DataFrame:
        from pyspark.sql import functions as f

        paths = [f"file:{p}" for p in self._staged.paths(epoch, batch, winners)]
        staged = _session().read.schema(_STAGED).option("mode", "FAILFAST").json(paths)
        data = f.coalesce(f.encode("data", "UTF-8"), f.unbase64("base64"))
        if self.fields is None:
            return staged.select("id", "key", data.alias("data"))
        parsed = f.from_json(f.decode(data, "UTF-8"), self.fields, {"mode": "FAILFAST"})
        return staged.select("id", parsed.alias("fields")).select("id", "fields.*")

    @property
    def _staged(self) -> Staging:
        return Staging(self.staging.absolute(), OS_DISK)


def _session() -> SparkSession:
    """The driver's; raises UsageError where there is none."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise UsageError(f"a FormatSink writes with Spark: {e}") from e
    try:
        return SparkSession.active()
    except PySparkException as e:
        raise UsageError(
            "a FormatSink writes with Spark, and this process has no Spark session: run the "
            "application on the Spark runner, or give it another sink, such as FileSink"
        ) from e
