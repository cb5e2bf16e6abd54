"""What a sink under test is: the contract that a data engineer fulfils to have it judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = "id STRING, key STRING, seq BIGINT, value BIGINT, ts TIMESTAMP"
"""The rows that a sink under test is given."""
BATCHES, ROWS = 4, 20
"""How many batches a run has unless the sink asks for more, and rows each of them."""


@dataclass(frozen=True)
class Environment:
    """What a sink may use in one run.

    Attributes:
        spark: the session.
        checkpoint: the ``checkpointLocation`` that its query must use.
        workdir: an empty folder of this run, for whatever the sink keeps in files.
        run_id: unique for each run; the same when a query is started again within it.
        addresses: where each endpoint is to be reached in this run.
    """

    spark: SparkSession
    checkpoint: str
    workdir: Path
    run_id: str
    addresses: Mapping[str, tuple[str, int]]

    def __getstate__(self) -> dict[str, Any]:
        """Python workers get everything but the session, which only the driver has."""
        return {**self.__dict__, "spark": None}

    def address(self, endpoint: str) -> tuple[str, int]:
        """Host and port at which to reach an endpoint now: a proxy of the real one."""
        if endpoint not in self.addresses:
            known = ", ".join(sorted(self.addresses)) or "none"
            raise LookupError(f"the sink has no endpoint {endpoint!r}; it has: {known}")
        return self.addresses[endpoint]


class Sink:
    """A sink under test. ``write`` and ``read`` are needed; the rest has defaults.

    Attributes:
        name: how it is called in results; the class's own name when empty.
        endpoints: name -> ``host:port`` of each real server that it talks to.
        servers: name -> what starts a real server on loopback (a context manager class of
            ``bettong.harness.servers``), for endpoints whose address is not given.
        spark_config: session settings that it needs (jars, extensions).
        ordered: whether the order in which ``read`` returns rows of one key is to be judged.
        batches: how many a run has: as many as it takes until all of the sink's code has run.
        batch_rows: how many rows each of them has.
    """

    name: str = ""
    endpoints: Mapping[str, str] = {}
    servers: Mapping[str, Callable[[], Any]] = {}
    spark_config: Mapping[str, str] = {}
    ordered: bool = False
    batches: int = BATCHES
    batch_rows: int = ROWS

    def setup(self, env: Environment) -> None:
        """Before every run: make an empty target (fresh table, folder, topic)."""

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        """Start and return the query, with ``env.checkpoint`` as its checkpointLocation."""
        raise NotImplementedError

    def read(self, env: Environment) -> Iterable[Any]:
        """What a reader sees now: dicts or Rows with at least ``id``."""
        raise NotImplementedError

    def teardown(self, env: Environment) -> None:
        """After every run."""


Step = Callable[[Environment], None]


class _ForeachBatchSink(Sink):
    def __init__(
        self,
        function: Callable[..., None],
        read: Callable[[Environment], Iterable[Any]],
        setup: Step | None,
        teardown: Step | None,
    ) -> None:
        self._function = function
        self._takes_env = _takes_env(function)
        self._read, self._setup, self._teardown = read, setup, teardown

    def setup(self, env: Environment) -> None:
        if self._setup is not None:
            self._setup(env)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        function, takes_env = self._function, self._takes_env

        def each(batch: DataFrame, batch_id: int) -> None:
            if takes_env:
                function(batch, batch_id, env)
            else:
                function(batch, batch_id)

        writer = rows.writeStream.foreachBatch(each)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        return self._read(env)

    def teardown(self, env: Environment) -> None:
        if self._teardown is not None:
            self._teardown(env)


def _takes_env(function: Callable[..., None]) -> bool:
    """Whether a third argument is asked for; one that need not be given is another matter, unless
    it is called so."""
    parameters = inspect.signature(function).parameters.values()
    given = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(given) > 2 and (given[2].default is given[2].empty or given[2].name == "env")


def foreach_batch_sink(
    function: Callable[..., None],
    read: Callable[[Environment], Iterable[Any]],
    *,
    name: str = "",
    endpoints: Mapping[str, str] | None = None,
    spark_config: Mapping[str, str] | None = None,
    setup: Step | None = None,
    teardown: Step | None = None,
    ordered: bool = False,
    batches: int = BATCHES,
    batch_rows: int = ROWS,
) -> Sink:
    """A sink out of a ``foreachBatch`` function, called as ``function(batch, batch_id)`` or
    ``function(batch, batch_id, env)``, and a function that reads back."""
    sink = _ForeachBatchSink(function, read, setup, teardown)
    sink.name = name or getattr(function, "__name__", type(function).__name__)
    sink.endpoints = endpoints or {}
    sink.spark_config = spark_config or {}
    sink.ordered = ordered
    sink.batches, sink.batch_rows = batches, batch_rows
    return sink


class _FormatSink(Sink):
    def __init__(self, format_name: str, options: Mapping[str, str]) -> None:
        self.name = f"format:{format_name}"
        self._format = format_name
        self._options = dict(options)

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        writer = rows.writeStream.format(self._format).options(**self._options)
        return (
            writer.option("path", str(env.workdir / "output"))
            .option("checkpointLocation", env.checkpoint)
            .start()
        )

    def read(self, env: Environment) -> Iterable[Any]:
        reader = env.spark.read.format(self._format).options(**self._options).schema(SCHEMA)
        return reader.load(str(env.workdir / "output")).collect()


def format_sink(format_name: str, **options: str) -> Sink:
    """Spark's own sink of a format that keeps files and can be read back, such as parquet."""
    return _FormatSink(format_name, options)
