"""Spark sessions for measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bettong.harness.spark.user_session import LOOPBACK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on this machine's first two cores, in a JVM that ends with it.

    Args:
        settings: beside those that keep it on this machine and quiet.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from bettong.engine.spark.shipping import use_this_python

    builder = SparkSession.builder.master("local[2]")
    own = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **LOOPBACK,
        "spark.python.authenticate.socketTimeout": "2m",
    }
    for name, value in {**own, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    use_this_python(session)
    try:
        yield session
    finally:
        session.stop()
        gateway = SparkContext._gateway
        if gateway is not None:  # a JVM that goes on would keep its options
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
            SparkContext._gateway = SparkContext._jvm = None
