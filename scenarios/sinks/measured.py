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
    "twins:TasksAppend": Measured("at-least-once", 55, 138),
    "postgres:PlainInsert": Measured("at-least-once", 40, 103),
    "postgres:OneTransaction": Measured("effectively-once", 64, 96),
    "duckdb:Append": Measured("at-least-once", 22, 89),
    "duckdb:OneTransaction": Measured("effectively-once", 25, 131),
    "mariadb:Upsert": Measured("effectively-once", 61, 215),
    "rabbitmq:PublishConfirmed": Measured("at-least-once", 54, 293),
    "http:PostWithKey": Measured("effectively-once", 37, 40),
}
