"""What a job under test is: the contract that a data engineer fulfils to have a whole streaming
query judged, with its own source, state and sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.job.compare import Bag, OuterBag, Table
from bettong.harness.queries.job.inputs import Input
from bettong.harness.queries.job.oracles import Clean, OnePerKey
from bettong.harness.queries.sink.contract import Environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Oracle = str | Clean | OnePerKey | Callable[..., Iterable[Mapping[str, Any]]]
Compare = Bag | Table | OuterBag


@dataclass(frozen=True)
class JobEnvironment(Environment):
    """What a job may use in one run: all that a sink may, and its inputs.

    Attributes:
        static: whether the inputs are plain frames of all rows, to see what a batch job makes of
            them.
    """

    paths: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    frames: Mapping[str, Callable[[], DataFrame]] = field(default_factory=dict)
    static: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Python workers get everything but what only the driver has."""
        return {**super().__getstate__(), "frames": {}}

    def input(self, name: str) -> DataFrame:
        """The rows of an input as a streaming frame, or as a plain one where ``static``."""
        frame: DataFrame = _known(self.frames, name, "input")()
        return frame

    def path(self, name: str) -> str:
        """The folder in which the files of an input appear."""
        return str(_known(self.paths, name, "input of files"))

    def topic(self, name: str) -> str:
        """What the topic of an input is called in this run."""
        return str(_known(self.topics, name, "topic"))


def _known(among: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in among:
        known = ", ".join(sorted(among)) or "none"
        raise LookupError(f"the job has no {what} {name!r}; it has: {known}")
    return among[name]


class Job:
    """A streaming job under test: ``transform``, ``write`` and ``read``; or ``build``, which does
    the first two at once, and ``read``.

    Attributes:
        name: how it is called in results; the class's own name when empty.
        inputs: name -> what it is fed.
        endpoints: name -> ``host:port`` of each real server that it talks to.
        servers: name -> what starts a real server on loopback, for endpoints whose address is not
            given.
        spark_config: session settings that it needs (jars, extensions).
        oracle: what its output should be: ``"batch"``, what ``transform`` makes of plain frames
            of all rows; :class:`Clean`, what runs without a fault give, however batches are cut;
            :class:`OnePerKey`; or a function of the rows of each input by name, which gives the
            rows of the output.
        compare: how outputs are compared.
    """

    name: str = ""
    inputs: Mapping[str, Input] = {}
    endpoints: Mapping[str, str] = {}
    servers: Mapping[str, Callable[[], Any]] = {}
    spark_config: Mapping[str, str] = {}
    oracle: Oracle = Clean()
    compare: Compare = Bag()

    def setup(self, env: JobEnvironment) -> None:
        """Before every run: make an empty target (fresh table, folder, topic)."""

    def transform(self, env: JobEnvironment) -> DataFrame:
        """The job's work, from ``env.input(NAME)``; also called where ``env.static``."""
        raise NotImplementedError

    def write(self, df: DataFrame, env: JobEnvironment) -> StreamingQuery:
        """Start and return the query, with ``env.checkpoint`` as its checkpointLocation."""
        raise NotImplementedError

    def build(self, env: JobEnvironment) -> StreamingQuery:
        """Start and return the query: by itself ``write(transform(env), env)``."""
        return self.write(self.transform(env), env)

    def read(self, env: JobEnvironment) -> Iterable[Any]:
        """What a reader of the job's output sees: dicts or Rows."""
        raise NotImplementedError

    def teardown(self, env: JobEnvironment) -> None:
        """After every run."""

    @property
    def has_transform(self) -> bool:
        """Whether the job's work can be done on plain frames."""
        return type(self).transform is not Job.transform
