"""What whole verdicts on the sinks that ship have found: ``benchmarks/sinks.py``."""

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
    "files:Parquet": Measured("effectively-once", 78, 180),
    "files:ParquetFiles": Measured("none", 47, 127),
    "files:JsonAppend": Measured("at-least-once", 22, 38),
    "files:JsonBatchFiles": Measured("effectively-once", 44, 40),
    "files:SqliteInsert": Measured("at-least-once", 24, 23),
    "files:SqliteOneTransaction": Measured("effectively-once", 25, 31),
    "files:SqliteRowsThenMarker": Measured("at-least-once", 27, 32),
    "files:SqliteMarkerThenRows": Measured("at-most-once", 27, 40),
    "writers:ForeachAppend": Measured("at-least-once", 45, 49),
    "writers:DataSourceDirect": Measured("at-least-once", 45, 132),
    "twins:TasksAppend": Measured("at-least-once", 55, 138),
    "twins:KeyedByPlace": Measured("at-least-once", 24, 51),
    "twins:OwnIdentity": Measured("at-least-once", 27, 57),
    "twins:AcknowledgesEarly": Measured("at-most-once", 23, 47),
    "postgres:PlainInsert": Measured("at-least-once", 40, 103),
    "postgres:OnConflict": Measured("effectively-once", 46, 100),
    "postgres:OneTransaction": Measured("effectively-once", 64, 96),
    "postgres:RowsThenMarker": Measured("at-least-once", 65, 119),
    "postgres:MarkerThenRows": Measured("at-most-once", 65, 99),
    "postgres:CopyPerPartition": Measured("at-least-once", 79, 217),
    "postgres:RowByRow": Measured("at-least-once", 93, 170),
    "postgres:SwallowsErrors": Measured("at-most-once", 46, 53),
    "jdbc:JdbcAppend": Measured("at-least-once", 121, 293),
    "duckdb:Append": Measured("at-least-once", 22, 89),
    "duckdb:OneTransaction": Measured("effectively-once", 25, 131),
    "redis:Push": Measured("at-least-once", 31, 77),
    "redis:Increment": Measured("at-least-once", 35, 107),
    "redis:Set": Measured("effectively-once", 37, 78),
    "redis:GuardedPush": Measured("effectively-once", 58, 92),
    "mariadb:Insert": Measured("at-least-once", 41, 89),
    "mariadb:Upsert": Measured("effectively-once", 61, 215),
    "rabbitmq:PublishConfirmed": Measured("at-least-once", 54, 293),
    "nats:Publish": Measured("at-least-once", 43, 152),
    "nats:PublishWithId": Measured("effectively-once", 57, 217),
    "kafka:SparkKafka": Measured("at-least-once", 33, 121),
    "kafka:IdempotentProducer": Measured("at-least-once", 39, 238),
    "http:PostWithKey": Measured("effectively-once", 37, 40),
}
