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
    "postgres:PlainInsert": Measured("at-least-once", 40, 103),
    "postgres:OneTransaction": Measured("effectively-once", 64, 96),
    "mariadb:Upsert": Measured("effectively-once", 61, 215),
}
