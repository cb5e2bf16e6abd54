"""What a driver host does for a job under test: one incarnation of its query, its batch form."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.job.contract import Job, JobEnvironment
from bettong.harness.queries.job.inputs import Files, Recorded, StepInput, Topic
from bettong.harness.queries.job.loading import load_job
from bettong.harness.queries.job.plan import EMPTY_BATCHES, has_timers, marked_by, shown_by
from bettong.harness.queries.job.script import load_reader
from bettong.harness.queries.job.typed import typed_bytes, typed_map
from bettong.harness.queries.job.values import number_of
from bettong.harness.queries.run.aimed import aimed
from bettong.harness.queries.run.awaited import ended_when_done
from bettong.harness.queries.run.failure import Failures
from bettong.harness.queries.run.job import NoQueryError
from bettong.harness.queries.sink import aiming
from bettong.harness.queries.sink.rows import read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CALL = f"{__name__}:incarnation"
BATCH = f"{__name__}:batch"
REREAD = f"{__name__}:reread"
_LOOK_S = 2.0


def incarnation(
    spark: SparkSession,
    *,
    target: Mapping[str, Any],
    directory: str,
    run_id: str,
    addresses: Mapping[str, tuple[str, int]],
    paths: Mapping[str, str],
    topics: Mapping[str, str],
    settings: Mapping[str, str],
    parts: Iterable[str],
    lines: Iterable[int] = (),
    ahead_s: int = 0,
) -> dict[str, Any]:
    """Do some of ``setup``, ``write``, ``read``, ``teardown``, in that order.

    ``lines``, ``ahead_s``: as for :func:`aimed`.

    Returns ``error``: why the query failed, or None; ``facts``: what its plan and progress show;
    ``rows``: what a reader sees at the end.
    """
    job = _job(target)
    for name, value in settings.items():
        spark.conf.set(name, value)
    workdir = Path(directory) / "work"
    workdir.mkdir(parents=True, exist_ok=True)
    env = JobEnvironment(
        spark=spark,
        checkpoint=str(Path(directory) / "checkpoint"),
        workdir=workdir,
        run_id=run_id,
        addresses={name: (host, port) for name, (host, port) in addresses.items()},
        paths=paths,
        topics=topics,
    )
    frames = {name: partial(_stream, env, name, given) for name, given in job.inputs.items()}
    object.__setattr__(env, "frames", frames)
    done: dict[str, Any] = {"error": None}
    aiming.forget_notes()
    if "setup" in parts:
        job.setup(env)
    if {"look", "teardown"} <= set(parts):  # not at each restart: nobody asks what is there then
        done["looked"] = _looked(job, env)
    if "write" in parts:
        wider = target["elsewhere"]
        with aimed(spark, Path(directory), elsewhere=wider, lines=lines, ahead_s=ahead_s):
            done["error"], done["facts"] = _write(job, env)
    if "read" in parts:
        done["rows"] = [plain(row) for row in read_back(job.read(env))]
    if "teardown" in parts:
        job.teardown(env)
    done["outside"] = aiming.outside(Path(directory))
    done["processes"] = aiming.processes()
    done["in_turn"] = aiming.in_turn()
    return done


def batch(
    spark: SparkSession,
    *,
    target: Mapping[str, Any],
    directory: str,
    inputs: Mapping[str, str],
) -> list[dict[str, Any]]:
    """What ``transform`` makes of plain frames, as typed rows.

    Args:
        inputs: for each the file of its rows, which is read as the stream reads its files.
    """
    job = _job(target)
    frames: dict[str, Callable[[], DataFrame]] = {}
    for name, path in inputs.items():
        given = job.inputs[name]
        assert isinstance(given, StepInput)
        frames[name] = partial(_of_files(spark.read, given).load, path)
    workdir = Path(directory)
    env = JobEnvironment(spark, str(workdir), workdir, "batch", {}, frames=frames, static=True)
    return [typed(row) for row in rows_of(job.transform(env).collect(), "transform()")]


def reread(spark: SparkSession, *, target: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read the rows between two offsets of a source of the user's own three times, twice with
    readers that know nothing of each other.

    Returns ``rows``: how many there are; ``differs``: whether they are not always the same.
    """
    from pyspark.sql.datasource import SimpleDataSourceStreamReader

    given = _job(target).inputs[name]
    assert isinstance(given, Recorded)
    schema = _schema(given)

    def reader() -> Any:
        source = given.source(dict(given.options))
        try:
            return source.simpleStreamReader(schema)
        except NotImplementedError:
            return source.streamReader(schema)

    first = reader()
    start = first.initialOffset()
    if isinstance(first, SimpleDataSourceStreamReader):
        rows, end = first.read(start)
        found = [_values(rows)]
        found += [_values(r.readBetweenOffsets(start, end)) for r in (first, reader())]
    else:
        end = first.latestOffset()
        found = [
            [row for part in r.partitions(start, end) for row in _values(r.read(part))]
            for r in (first, first, reader())
        ]
    return {"rows": len(found[0]), "differs": any(each != found[0] for each in found)}


def _schema(given: Recorded) -> Any:
    from pyspark.sql.types import StructType

    schema = given.source(dict(given.options)).schema()
    return schema if isinstance(schema, StructType) else StructType.fromDDL(schema)


def _values(rows: Iterable[Any]) -> list[str]:
    """Rows, or batches of Arrow, as texts that can be compared."""
    return [
        repr(row)
        for each in rows
        for row in (each.to_pylist() if hasattr(each, "to_pylist") else [each])
    ]


def read_script(
    spark: SparkSession,
    *,
    reader: str,
    directory: str,
    run_id: str,
    addresses: Mapping[str, tuple[str, int]],
    parts: Iterable[str],
    settings: Mapping[str, str],
) -> dict[str, Any]:
    """What the reader of a script's output sees; ``rows`` as of a job."""
    workdir = Path(directory) / "work"
    reached = {name: (host, port) for name, (host, port) in addresses.items()}
    env = JobEnvironment(spark, str(workdir), workdir, run_id, reached)
    return {"rows": [plain(row) for row in read_back(load_reader(reader)(env))]}


def _job(target: Mapping[str, Any]) -> Job:
    sys.path[:] = [*sys.path, *(p for p in target["path"] if p not in sys.path)]
    return load_job(target["name"], fresh=True)


def _stream(env: JobEnvironment, name: str, given: StepInput | Recorded) -> DataFrame:
    from pyspark.sql.functions import col, from_json

    spark = env.spark
    if isinstance(given, Recorded):
        short = given.source
        if not isinstance(short, str):
            spark.dataSource.register(short)
            short = short.name()
        return spark.readStream.format(short).options(**given.options).load()
    if isinstance(given, Topic):
        host, port = env.address(given.server)
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", f"{host}:{port}")
            .option("subscribe", env.topic(name))
            .option("startingOffsets", "earliest")
            .load()
        )
        value = from_json(col("value").cast("string"), given.schema)
        return records.select(value.alias("row")).select("row.*")
    reader = _of_files(spark.readStream, given).option("maxFilesPerTrigger", 1)
    frame: DataFrame = reader.load(env.path(name))
    return frame


def _of_files(reader: Any, given: StepInput) -> Any:
    """A reader of an input's files, of a stream of them or of plain ones."""
    reader = reader.schema(given.schema).format(given.file_format)
    if isinstance(given, Files):
        header = {"header": "true"} if given.format == "csv" else {}
        reader = reader.options(**{**header, **given.options})
    return reader


def _write(job: Job, env: JobEnvironment) -> tuple[str | None, dict[str, Any]]:
    query = None
    failures = Failures()
    facts: dict[str, Any] = {}
    streams = env.spark.streams
    before = {each.runId for each in streams.active}  # one that a crash has left may be ending
    try:
        with ended_when_done(streams, before, goes_on_for_ever) as seen:
            found = job.build(env)
        query = found if hasattr(found, "processAllAvailable") else None
        at_once = len({each.runId for each in streams.active} - before)
        facts["queries"] = max(at_once, seen.get("queries", 0))
        if facts["queries"] > 1:
            raise RuntimeError("it has more than one streaming query")
        if query is None:
            raise NoQueryError(found)
        facts["endless"] = goes_on_for_ever(query) or seen.get("endless", False)
    except Exception as e:
        return failures.in_words(e), facts
    finally:
        if query is not None:
            facts.update(_facts(query, env, failures))
            for each in (query, *(x for x in streams.active if x.runId not in before)):
                each.stop()
    return None, facts


def _looked(job: Job, env: JobEnvironment) -> list[dict[str, Any]]:
    """What is there when nothing was written; nothing where that cannot even be read."""
    try:
        return [plain(row) for row in read_back(job.read(env))]
    except Exception:
        return []


def goes_on_for_ever(query: StreamingQuery) -> bool:
    """Wait until a query has nothing left to do; it is stopped, and True, when that never comes."""
    if not query.isActive:
        if (error := query.exception()) is not None:
            raise error
        return False
    done, endless = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(query, done, endless), daemon=True).start()
    try:
        query.processAllAvailable()
    finally:
        done.set()
    return endless.is_set()


def _watch(query: StreamingQuery, done: threading.Event, endless: threading.Event) -> None:
    while not done.wait(_LOOK_S):
        with contextlib.suppress(Exception):  # it is ending
            if _is_endless(query):
                endless.set()
                query.stop()
                return


def _is_endless(query: StreamingQuery) -> bool:
    """Whether it plans batch after batch without data, for the time goes on."""
    last = query.recentProgress[-EMPTY_BATCHES:]
    empty = {progress.batchId for progress in last if not progress.numInputRows}
    return len(empty) == EMPTY_BATCHES and has_timers(query._jsq.explainInternal(True))


def _facts(query: StreamingQuery, env: JobEnvironment, failures: Failures) -> dict[str, Any]:
    """What the plan and the progress of a query show of it; ``error``: why nothing is seen."""
    import json

    try:
        plan = str(query._jsq.explainInternal(True))
        at_first = str(query._jsq.streamingQuery().logicalPlan().toString())
        progress = [p.json for p in query.recentProgress]
    except Exception as e:  # the query's own error, if there is one, says more
        return {"error": failures.in_words(e)}

    dropped, rows = 0, 0
    for text in progress:
        value = json.loads(text)
        rows += int(value.get("numInputRows") or 0)
        for operator in value.get("stateOperators", ()):
            dropped += int(operator.get("numRowsDroppedByWatermark") or 0)
    sources = {name: f":{path}]" for name, path in env.paths.items()}
    marked = marked_by(at_first, {**sources, **env.topics})
    return {**shown_by(plan), **marked, "dropped": dropped, "rows": rows}


def plain(row: Any) -> dict[str, Any]:
    """A row of an output as JSON values."""
    return _row(row, _plain)


def typed(row: Any) -> dict[str, Any]:
    """The same, with the types that JSON does not have."""
    return _row(row, _typed)


def _row(row: Any, part: Callable[[Any], Any]) -> dict[str, Any]:
    values = row.asDict() if hasattr(row, "asDict") else dict(row)
    return {str(name): part(value) for name, value in values.items()}


def _name(key: Any) -> str:
    """A key of a map as Spark's JSON has it."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _typed(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return typed_bytes(bytes(value))
    if isinstance(value, Mapping):
        return typed_map(value, {_name(key): _typed(part) for key, part in value.items()})
    return _simple(value, _typed)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {_name(key): _plain(part) for key, part in value.items()}
    return _simple(value, _plain)


def _simple(value: Any, part: Callable[[Any], Any]) -> Any:
    """A value that is neither bytes nor a map."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return number_of(value)
    if hasattr(value, "asDict"):
        return _row(value, part)
    if isinstance(value, list | tuple):
        return [part(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(part, value), key=repr)  # in no order, and none is told
    if hasattr(value, "tolist"):  # numpy's
        return part(value.tolist())
    return str(value)
