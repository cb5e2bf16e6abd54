"""A Spark session for a user's own run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bettong.engine.spark.settings import LOCAL_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session(name: str, master: str) -> Iterator[SparkSession]:
    """A session, ended afterwards; on this machine alone it listens on loopback."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    if master.startswith("local"):
        loopback = ("spark.driver.bindAddress", "spark.driver.host")
        for setting, value in {**LOCAL_SETTINGS, **dict.fromkeys(loopback, "127.0.0.1")}.items():
            builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
