"""A Spark session for a user's own run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a small batch is slowed down by: measured, see the engine's docs.
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}


@contextmanager
def session(name: str, master: str) -> Iterator[SparkSession]:
    """A session, ended afterwards; on this machine alone it listens on loopback."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    if master.startswith("local"):
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
