"""Which conductor a running session's hooks speak with; changed without restarting the JVM."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from bettong.engine import steps
from bettong.engine.steps import Instrumentation
from bettong.harness.spark import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTY = "bettong.instrumentation"


def install(spark: SparkSession, instrumentation: Instrumentation) -> None:
    """Make this process, its JVM, and the tasks of queries started from this thread from now on
    record as asked. ``Instrumentation()`` turns recording off."""
    steps.install(instrumentation)
    on = instrumentation.conductor is not None or instrumentation.trace is not None
    text = json.dumps(asdict(instrumentation)) if on else None
    context = spark.sparkContext
    getattr(context._jvm, jar.CONDUCTOR).install(text)
    # Carried by Spark to the threads of queries and to tasks, wherever they run.
    context.setLocalProperty(PROPERTY, text)  # type: ignore[arg-type]
