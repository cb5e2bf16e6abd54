"""check-job on real Spark: no to what is broken, yes to what is right, unknown to what proves
nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bettong.harness.queries.faults.operations import LONGER, TWELVE
from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result

# As long as the checks of sinks together: in a worker of its own.
pytestmark = pytest.mark.spark

REPLAY = "crash(driver, before batch=1/commits)"
SHIPPED = "bettong.scenarios.jobs"
USERS = """
import json
import sqlite3
import sys
from pathlib import Path

from bettong.harness import Bag, Files, Job, OnePerKey, Recorded

class Base(Job):
    inputs = {"orders": Files("json", "id STRING, amount INT", steps=3)}

    def transform(self, env):
        return env.input("orders")

    def write(self, df, env):
        def write(batch, batch_id):
            lines = batch.toJSON().collect()
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        files = sorted(env.workdir.glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

class Right(Base):
    def read(self, env):  # only a replay reads its files in small parts
        parts = env.spark.conf.get("spark.sql.files.maxPartitionBytes")
        assert int(parts.rstrip("b")) > 64
        return super().read(env)

class Waits(Right):
    def write(self, df, env):
        query = super().write(df, env)
        query.awaitTermination()
        return query

class Random(Base):
    def transform(self, env):
        return env.input("orders").selectExpr("id", "rand() AS chance")

class NowAndThen(Base):  # the first run without a fault has all rows
    oracle = "batch"

    def read(self, env):
        runs = vars(sys).setdefault("runs_that_were_read", [])  # this file is loaded for each
        if env.workdir not in runs:
            runs.append(env.workdir)
        return super().read(env)[runs.index(env.workdir):]

class RandomOfBatch(Random):
    oracle = "batch"

class Empty(Base):
    def transform(self, env):
        return env.input("orders").where("amount < 0")

class Blind(Base):
    def read(self, env):
        return []

class Deaf(Base):
    def build(self, env):
        rows = env.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        return self.write(rows.selectExpr("CAST(value AS STRING) AS id").limit(3), env)

class Two(Base):
    def build(self, env):
        beside = env.input("orders").writeStream.format("noop")
        beside.option("checkpointLocation", str(env.workdir / "beside")).start()
        return super().build(env)

class OneAfterTheOther(Base):  # faults would hit the first one, and the second one appends
    def build(self, env):
        def append(batch, batch_id):
            with (env.workdir / "orders.jsonl").open("a") as out:
                out.writelines(f"{line}\\n" for line in batch.toJSON().collect())

        first = env.input("orders").writeStream.format("noop").trigger(availableNow=True)
        first.option("checkpointLocation", str(env.workdir / "first")).start().awaitTermination()
        second = env.input("orders").writeStream.foreachBatch(append).trigger(availableNow=True)
        return second.option("checkpointLocation", env.checkpoint).start()

class ByNow(Base):
    def transform(self, env):
        return env.input("orders").where("current_timestamp() > '2024-01-01'")

class WrongOracle(Base):
    oracle = staticmethod(lambda inputs: [{**row, "amount": 7} for row in inputs["orders"]])

class Refused(Exception):
    pass

class Refuses(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            raise Refused("row 3")

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

def at_a_row(what):
    def each(row):
        exec(what)

    class AtARow(Base):
        def write(self, df, env):
            writer = df.writeStream.foreach(each)
            return writer.option("checkpointLocation", env.checkpoint).start()

    return AtARow

LacksAPackage = at_a_row("import no_such.package")
DiesUnheard = at_a_row("import os; os._exit(3)")

class LacksAColumn(Base):
    def transform(self, env):
        return env.input("orders").select("nothing")

class Checksums(Base):
    spark_config = {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "true"}
    inputs = {"orders": Files("json", "id STRING, at TIMESTAMP", steps=2, per_step=2)}

    def transform(self, env):
        return env.input("orders").dropDuplicates(["id"]).select("id")

class Distinct(Base):
    def transform(self, env):
        return env.input("orders").dropDuplicates(["id"])

class Polled(Base):
    def __init__(self):
        from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

        class Reader(SimpleDataSourceStreamReader):
            def initialOffset(self):
                return {"at": 0}

            def read(self, start):
                end = min(start["at"] + 2, 6)
                return self.readBetweenOffsets(start, {"at": end}), {"at": end}

            def readBetweenOffsets(self, start, end):
                return iter([(f"p{n}", Polled.salt()) for n in range(start["at"], end["at"])])

        class Api(DataSource):
            @classmethod
            def name(cls):
                return "api"

            def schema(self):
                return "id STRING, amount INT"

            def simpleStreamReader(self, schema):
                return Reader()

        self.inputs = {"orders": Recorded(Api)}

    @staticmethod
    def salt():
        return 7

class PolledAnew(Polled):
    def __init__(self):
        super().__init__()
        import itertools
        count = itertools.count()
        Polled.salt = staticmethod(lambda: next(count))

class Numbered(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            import numbering

            rows = [(next(numbering.numbers), *row, batch_id) for row in batch.collect()]
            with sqlite3.connect(env.workdir / "orders.db") as db:
                db.execute("CREATE TABLE IF NOT EXISTS t (n PRIMARY KEY, id, amount, batch)")
                db.execute("DELETE FROM t WHERE batch = ?", (batch_id,))
                db.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?)", rows)
            db.close()

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        with sqlite3.connect(env.workdir / "orders.db") as db:
            return [{"id": r[0], "amount": r[1]} for r in db.execute("SELECT id, amount FROM t")]

class HowManyBefore(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            before = len(self.read(env))
            lines = [json.dumps({**row.asDict(), "before": before}) for row in batch.collect()]
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

class BatchesAsText(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            done = env.workdir / "done"
            done.mkdir(exist_ok=True)
            if str(batch_id) > max((each.name for each in done.iterdir()), default=""):
                lines = batch.toJSON().collect()
                (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))
                (done / str(batch_id)).touch()

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

class PrunesAsText(Base):  # keeps a marker of the last batch only
    def write(self, df, env):
        done = env.workdir / "done"

        def write(batch, batch_id):
            done.mkdir(exist_ok=True)
            if not (done / str(batch_id)).exists():
                with (env.workdir / "orders.jsonl").open("a") as out:
                    out.writelines(f"{line}\\n" for line in batch.toJSON().collect())
            (done / str(batch_id)).touch()
            for old in sorted(each.name for each in done.iterdir())[:-1]:
                (done / old).unlink()

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

class NumberedInBatch(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            lines = [json.dumps({"id": r.id, "n": n}) for n, r in enumerate(batch.collect())]
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        writer = df.writeStream.foreachBatch(write).trigger(processingTime="1 hour")
        return writer.option("checkpointLocation", env.checkpoint).start()

class HowManyBeforeEachId(HowManyBefore):
    oracle = OnePerKey("id")

class Swallows(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            try:
                batch.write.mode("overwrite").json(str(env.workdir / f"{batch_id}.jsonl"))
            except Exception as e:
                print(e)

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        files = sorted(env.workdir.glob("*.jsonl/part-*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

class AlwaysThere(Base):
    def setup(self, env):
        self.folder.mkdir(exist_ok=True)

    def write(self, df, env):
        def write(batch, batch_id):
            for row in batch.collect():
                (self.folder / f"{row.id}.json").write_text(json.dumps(row.asDict()))

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(file.read_text()) for file in self.folder.glob("*.json")]

    folder = Path(__file__).with_name("orders")

class CountedInMemory(Distinct):
    def write(self, df, env):
        counted = []

        def write(batch, batch_id):
            lines = [json.dumps({**row.asDict(), "n": len(counted)}) for row in batch.collect()]
            counted.extend(lines)
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

class MarkerElsewhere(Base):
    folder = Path(__file__).with_name("elsewhere")

    def connect(self, env):
        return sqlite3.connect(self.folder / f"{env.run_id}.db")

    def setup(self, env):
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{env.run_id}.db").unlink(missing_ok=True)
        with self.connect(env) as db:
            db.execute("CREATE TABLE t (id, amount)")
            db.execute("CREATE TABLE batches (id PRIMARY KEY)")
        db.close()

    def write(self, df, env):
        def write(batch, batch_id):
            rows = [tuple(row) for row in batch.collect()]
            db = self.connect(env)
            if not db.execute("SELECT 1 FROM batches WHERE id = ?", (batch_id,)).fetchone():
                db.execute("INSERT INTO batches VALUES (?)", (batch_id,))
                db.commit()
                db.executemany("INSERT INTO t VALUES (?, ?)", rows)
                db.commit()
            db.close()

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env):
        with self.connect(env) as db:
            return [{"id": r[0], "amount": r[1]} for r in db.execute("SELECT id, amount FROM t")]

class Pooled(Base):
    def write(self, df, env):
        folder, beside = env.workdir, str(Path(__file__).parent)

        def put(rows):
            import sys

            sys.path.append(beside)
            import pooled

            with pooled.connection(folder / "orders.db") as db:
                db.execute("CREATE TABLE IF NOT EXISTS t (id PRIMARY KEY, amount)")
                db.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", map(tuple, rows))

        writer = df.writeStream.foreachBatch(lambda batch, _: batch.foreachPartition(put))
        return writer.option("checkpointLocation", env.checkpoint).start()

    read = Numbered.read

class Locks(Base):  # and nobody takes the lock away
    def write(self, df, env):
        (env.workdir / "lock").open("x").close()
        return super().write(df, env)

class BatchesTold(Base):
    def write(self, df, env):
        def write(batch, batch_id):
            lines = [json.dumps({**row.asDict(), "batch": batch_id}) for row in batch.collect()]
            (env.workdir / f"{batch_id}.jsonl").write_text("".join(f"{l}\\n" for l in lines))

        writer = df.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", env.checkpoint).start()
"""


POOLED = """
import sqlite3

pool = []

def connection(path):
    if not pool:
        pool.append(sqlite3.connect(path))
    return pool[0]
"""


def check(environments: SparkEnvironments, target: str, *only: str, **more: object) -> Result:
    request = Request(target, contract="job", only=only, **more)  # type: ignore[arg-type]
    result = check_one_job(request, environments, print)
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    return result


@pytest.fixture
def users(tmp_path: Path) -> str:
    path = tmp_path / "my_job.py"
    path.write_text(USERS)
    (tmp_path / "numbering.py").write_text("import itertools\nnumbers = itertools.count()\n")
    (tmp_path / "pooled.py").write_text(POOLED)
    return str(path)


@pytest.mark.parametrize("name", ["Right", "Waits"])
def test_a_right_job_stands_a_replay(
    environments: SparkEnvironments, users: str, name: str
) -> None:
    result = check(environments, f"{users}:{name}", REPLAY)
    assert (result.verdict, result.kind) == ("valid", "job")
    assert result.details["oracle"] == "the envelope of clean runs"
    assert result.coverage.injected == 1


@pytest.mark.parametrize(
    ("name", "why", "what_to_do"),
    [
        ("Refuses", ": the query fails without any fault: my_job.Refused: row 3; ", "mend that"),
        ("LacksAPackage", "No module named 'no_such'; ", "install what brings no_such"),
        ("DiesUnheard", "exited unexpectedly", "without a word"),
        ("LacksAColumn", "no batch was begun: AnalysisException: [UNRESOLVED_COLUMN", "mend that"),
    ],
)
def test_a_query_that_fails_by_itself_is_unknown_and_says_in_a_line_why_and_what_to_do(
    environments: SparkEnvironments, users: str, name: str, why: str, what_to_do: str
) -> None:
    result = check(environments, f"{users}:{name}")
    assert result.verdict == "unknown"
    assert why in result.reason
    assert what_to_do in result.reason
    assert "\n" not in result.reason


def test_a_query_that_cannot_be_started_again_is_broken_by_a_stop(
    environments: SparkEnvironments, users: str
) -> None:
    stopped = "stop(driver, after batch=1/commits)"
    result = check(environments, f"{users}:Locks", stopped)
    assert result.verdict == "invalid"
    assert {a.kind for a in result.anomalies} == {"Stuck"}
    result = check(environments, f"{users}:Locks", clean_only=True)
    assert result.verdict == "unknown"
    assert "FileExistsError" in result.reason


def test_a_driver_dies_where_a_job_says_what_state_it_keeps(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:Distinct", "crash(driver, before state/op=0/metadata)")
    assert (result.verdict, result.coverage.injected) == ("valid", 1), result.reason


def test_appended_windows_are_there_twice_and_the_replay_shows_it_again(
    environments: SparkEnvironments,
) -> None:
    target = f"{SHIPPED}.windows:CountsAppended"
    close = "crash(driver, before batch=5/commits)"  # the batch without data, which closes windows
    result = check(environments, target, close)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once")
    assert {a.kind for a in result.anomalies} == {"Duplicate"}


@pytest.mark.slow
def test_a_replay_reads_files_in_other_parts(environments: SparkEnvironments) -> None:
    result = check(environments, f"{SHIPPED}.stateless:KeyedByPlace", REPLAY)
    assert {a.kind for a in result.anomalies} == {"Duplicate"}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        pytest.param("Numbered", {"Loss"}, marks=pytest.mark.slow),
        pytest.param("HowManyBefore", {"Corrupt"}, marks=pytest.mark.slow),
        ("HowManyBeforeEachId", {"Corrupt"}),
    ],
)
def test_what_a_new_driver_sees_or_knows_otherwise_is_found(
    environments: SparkEnvironments, users: str, name: str, kinds: set[str]
) -> None:
    """A counter of a helper module begins anew; a replay finds its own rows in the target."""
    result = check(environments, f"{users}:{name}", REPLAY)
    assert result.verdict == "invalid", result.reason
    assert {a.kind for a in result.anomalies} == kinds


@pytest.mark.parametrize(
    ("name", "kinds", "shown_by"),
    [
        ("BatchesAsText", {"Loss"}, [(TWELVE.id,)]),
        ("PrunesAsText", {"Duplicate"}, [(LONGER.id,)]),
        ("NumberedInBatch", set(), []),
    ],
)
def test_what_is_right_in_few_batches_is_tried_in_more(
    environments: SparkEnvironments,
    users: str,
    name: str,
    kinds: set[str],
    shown_by: list[tuple[str, ...]],
) -> None:
    """As text 10 is not after 9, which needs no crash to be wrong, or does. What hangs on how rows
    are cut is held against its like; and no trigger's interval is waited for."""
    result = check(environments, f"{users}:{name}", LONGER.id)
    assert result.coverage.not_injected == 0, result.reason
    assert {a.kind for a in result.anomalies} == kinds
    assert [shown.faults for shown in result.counterexamples] == shown_by


@pytest.mark.parametrize(("name", "kinds"), [("Swallows", {"Loss"}), ("Right", set())])
def test_what_spark_gives_up_is_the_jobs_to_hear_of(
    environments: SparkEnvironments, users: str, name: str, kinds: set[str]
) -> None:
    each = "storage(EIO, after batch=1/stage=0/p=0/a=0/task, each attempt)"
    result = check(environments, f"{users}:{name}", each)
    assert result.coverage.injected == 1, result.reason
    assert {a.kind for a in result.anomalies} == kinds
    (run,) = (run for run in result.runs if run.faults == (each,))
    assert run.evidence[each] == "the step failed with EIO, in 4 attempt(s)"


def test_a_job_with_state_is_known_for_one(environments: SparkEnvironments, users: str) -> None:
    result = check(environments, f"{users}:Distinct", clean_only=True)
    (against,) = (x for x in result.assumptions if x.startswith("held against"))
    assert "other shuffle partitions" in against
    assert "RocksDB state" in against


@pytest.mark.slow
def test_what_restarts_change_of_a_job_with_state_no_crash_may_change(
    environments: SparkEnvironments, users: str
) -> None:
    """Numbers from the driver's memory."""
    result = check(environments, f"{users}:CountedInMemory", REPLAY)
    assert "a restart between batches" in result.details["envelope"][0]
    assert {a.kind for a in result.anomalies} == {"Corrupt"}


@pytest.mark.slow
def test_what_is_kept_elsewhere_is_broken_in_the_midst_too(
    environments: SparkEnvironments, users: str
) -> None:
    between = "crash(driver, before batch=1/sink.file=4.commit)"
    result = check(environments, f"{users}:MarkerElsewhere", between)
    assert {a.kind for a in result.anomalies} == {"Loss"}, result.reason


def test_what_a_python_worker_remembers_ends_with_its_driver(
    environments: SparkEnvironments, users: str
) -> None:
    assert check(environments, f"{users}:Pooled", REPLAY).verdict == "valid"


def test_rows_that_setup_leaves_would_hide_a_loss(
    environments: SparkEnvironments, users: str
) -> None:
    with pytest.raises(UsageError, match=r"AlwaysThere: setup\(\) leaves 15 row"):
        check(environments, f"{users}:AlwaysThere", REPLAY)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Random", "two runs without faults differ"),
        ("RandomOfBatch", "two runs without faults differ"),
        ("Empty", "read() returned nothing"),
        # The same reason as that before, and as of a sink at every change.
        pytest.param("Blind", "read() returned nothing", marks=pytest.mark.slow),
        ("Two", "it starts 2 streaming queries"),
        ("OneAfterTheOther", "it starts 2 streaming queries"),
        ("ByNow", "it goes by the clock (filter)"),
    ],
)
def test_what_proves_nothing_is_unknown(
    environments: SparkEnvironments, users: str, name: str, reason: str
) -> None:
    result = check(environments, f"{users}:{name}", REPLAY)
    assert result.verdict == "unknown"
    assert reason in result.reason


def test_what_goes_wrong_in_the_second_run_without_faults_is_no_mere_difference(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:NowAndThen", REPLAY)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once"), result.reason
    assert result.counterexamples[0].faults == ()
    assert {a.kind for a in result.counterexamples[0].anomalies} == {"Loss"}


@pytest.mark.slow
def test_an_input_that_is_not_consumed_is_no_pass(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:Deaf", REPLAY)
    assert result.verdict == "unknown"
    assert "200 batches without step 1 of orders" in result.reason


@pytest.mark.parametrize(
    ("name", "fault", "kinds"),
    [
        pytest.param(
            "CopiedOfOnePartition",
            "more-partitions(before step=2)",
            {"Stuck"},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Copied",
            "crash-and-more-partitions(driver, before batch=1/commits)",
            set(),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_topic_that_is_read_gets_more_partitions(
    environments: SparkEnvironments, name: str, fault: str, kinds: set[str]
) -> None:
    pytest.importorskip("kafka")
    result = check(environments, f"{SHIPPED}.kafka:{name}", fault)
    if "skipped" in result.details:
        pytest.skip(result.reason)
    assert {a.kind for a in result.anomalies} == kinds
    (run,) = (run for run in result.runs if run.faults)
    assert "has 2 partitions" in run.evidence[fault]


def test_an_oracle_that_the_clean_run_contradicts_is_a_finding(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:WrongOracle")
    assert result.verdict == "invalid"
    assert result.counterexamples[0].faults == ()


def test_what_depends_on_how_batches_are_cut_is_reported(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:BatchesTold", clean_only=True)
    assert result.verdict == "valid"
    assert "the column batch" in result.details["envelope"][0]
    assert (result.guarantee, result.expected) == ("none", None), "no fault was tried"


@pytest.mark.slow
def test_pooled_threads_that_write_checksums_tell_of_their_own_run(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:Checksums", clean_only=True)
    assert result.verdict == "valid", result.reason


@pytest.mark.slow
def test_a_source_of_the_users_own_is_read_twice_first(
    environments: SparkEnvironments, users: str
) -> None:
    assert check(environments, f"{users}:Polled", REPLAY).verdict == "valid"
    anew = check(environments, f"{users}:PolledAnew", REPLAY)
    assert anew.verdict == "unknown"
    assert "other rows for the same offsets" in anew.reason


def test_a_fault_that_does_not_fire_is_no_pass(environments: SparkEnvironments, users: str) -> None:
    result = check(environments, f"{users}:Right", "crash(driver, before batch=9/commits)")
    assert result.verdict == "unknown"


def test_a_target_that_is_no_job_is_a_usage_error(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    path = tmp_path / "no_job.py"
    path.write_text("class Other: pass\n")
    with pytest.raises(UsageError, match="derive it from"):
        check(environments, f"{path}:Other")
