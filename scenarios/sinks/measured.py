"""What whole verdicts on the sinks that ship have found:
``python -m bettong.scenarios.benchmarks.measured_sinks``."""

from __future__ import annotations

from typing import NamedTuple

from bettong.lineage.results import Guarantee


class Measured(NamedTuple):
    """A whole verdict, single faults and two together, on two cores shared with other work.

    Attributes:
        level: what was found.
        runs: how many it took.
        seconds: how long.
    """

    level: Guarantee
    runs: int
    seconds: int


MEASURED = {
    "files:Parquet": Measured("effectively-once", 97, 155),
    "files:ParquetFiles": Measured("none", 47, 112),
    "files:JsonAppend": Measured("none", 33, 126),
    "files:JsonBatchFiles": Measured("effectively-once", 61, 70),
    "files:SqliteInsert": Measured("at-least-once", 45, 64),
    "files:SqliteOneTransaction": Measured("effectively-once", 49, 59),
    "files:SqliteRowsThenMarker": Measured("at-least-once", 59, 71),
    "files:SqliteMarkerThenRows": Measured("at-most-once", 59, 71),
    "writers:ForeachAppend": Measured("at-least-once", 45, 104),
    "writers:DataSourceRename": Measured("effectively-once", 312, 492),
    "writers:DataSourceDirect": Measured("at-least-once", 44, 452),
    "landed:Landed": Measured("effectively-once", 157, 257),
    "mutants:TasksAppend": Measured("at-least-once", 58, 135),
    "mutants:KeyedByPlace": Measured("at-least-once", 24, 57),
    "mutants:OwnIdentity": Measured("at-least-once", 27, 50),
    "mutants:AcknowledgesEarly": Measured("at-most-once", 23, 39),
    "mutants:WritesInPlace": Measured("none", 41, 135),
    "mutants:MarksBeforeArrow": Measured("at-most-once", 24, 45),
    "mutants:NamedByDay": Measured("at-least-once", 59, 48),
    "mutants:MergesThirds": Measured("at-most-once", 66, 86),
    "mutants:OneNameAside": Measured("none", 51, 209),
    "mutants:AsksOutside": Measured("at-least-once", 26, 49),
    "mutants:StagesByPartition": Measured("none", 181, 378),
    "postgres:PlainInsert": Measured("at-least-once", 40, 88),
    "postgres:OnConflict": Measured("effectively-once", 76, 207),
    "postgres:OneTransaction": Measured("effectively-once", 90, 112),
    "postgres:AskFirst": Measured("at-least-once", 68, 117),
    "postgres:AsynchronousCommit": Measured("at-most-once", 70, 103),
    "postgres:RowsThenMarker": Measured("at-least-once", 65, 146),
    "postgres:MarkerThenRows": Measured("at-most-once", 65, 137),
    "postgres:CopyPerPartition": Measured("at-least-once", 79, 221),
    "postgres:RowByRow": Measured("at-least-once", 93, 264),
    "postgres:SwallowsErrors": Measured("at-most-once", 46, 101),
    "jdbc:JdbcAppend": Measured("at-least-once", 121, 355),
    "duckdb:Append": Measured("at-least-once", 22, 108),
    "duckdb:OneTransaction": Measured("effectively-once", 25, 205),
    "redis:Push": Measured("at-least-once", 30, 96),
    "redis:Increment": Measured("at-least-once", 34, 115),
    "redis:Set": Measured("effectively-once", 50, 86),
    "redis:GuardedPush": Measured("effectively-once", 65, 96),
    "redis:MarksFirst": Measured("at-most-once", 74, 164),
    "mariadb:Insert": Measured("at-least-once", 41, 108),
    "mariadb:Upsert": Measured("effectively-once", 47, 81),
    "rabbitmq:PublishConfirmed": Measured("at-least-once", 40, 114),
    "nats:Publish": Measured("at-least-once", 43, 184),
    "nats:PublishWithId": Measured("effectively-once", 57, 236),
    "kafka:SparkKafka": Measured("at-least-once", 48, 268),
    "kafka:IdempotentProducer": Measured("at-least-once", 41, 285),
    "kafka:Transactional": Measured("effectively-once", 83, 708),
    "kafka:PreparedThenMarked": Measured("at-most-once", 70, 232),
    "http:Post": Measured("at-least-once", 30, 83),
    "http:PostWithKey": Measured("effectively-once", 63, 218),
    "http:PostInBackground": Measured("at-most-once", 38, 82),
    "delta:DeltaStream": Measured("effectively-once", 76, 564),
    "delta:DeltaAppend": Measured("at-least-once", 65, 424),
    "delta:DeltaAppendOnce": Measured("effectively-once", 77, 693),
    "delta:DeltaMerge": Measured("effectively-once", 84, 1247),
    "iceberg:IcebergStream": Measured("effectively-once", 55, 189),
    "iceberg:IcebergAppend": Measured("at-least-once", 49, 202),
}
