"""While a query of one run is there: its probes, and what time it is for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bettong.engine import steps
from bettong.engine.steps import Instrumentation
from bettong.harness.queries.sink import aiming
from bettong.harness.queries.sink.ran_lines import noted_in
from bettong.harness.spark import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def aimed(
    spark: SparkSession,
    directory: Path,
    *,
    elsewhere: bool,
    lines: Iterable[int],
    ahead_s: int,
) -> Iterator[None]:
    """Probes report what happens in the run's folder, and the clock of Python and of SQL is so far
    ahead; the rest as for :func:`aiming.aim`."""
    aiming.aim(
        directory / "work",
        steps.installed(),
        elsewhere=elsewhere,
        lines=lines,
        ran=noted_in(directory),
        ahead_s=ahead_s,
    )
    try:
        with _sql_ahead(spark, ahead_s) if ahead_s else contextlib.nullcontext():
            yield
    finally:
        aiming.aim(None, Instrumentation())


@contextlib.contextmanager
def _sql_ahead(spark: SparkSession, seconds: int) -> Iterator[None]:
    assert spark.sparkContext._jvm is not None
    system = spark.sparkContext._jvm.System
    system.setProperty(jar.AHEAD_PROPERTY, str(seconds))
    try:
        yield
    finally:
        system.clearProperty(jar.AHEAD_PROPERTY)
