"""Jars that a sink needs in Spark's JVM, by Maven, as session settings."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark

from bettong.harness.servers import ServerMissingError, jars


def spark_jars(*coordinates: str) -> Mapping[str, str]:
    """``spark.jars`` with just these jars, without what they depend on.

    Raises ServerMissingError without Maven."""
    return {"spark.jars": ",".join(map(str, jars(coordinates, transitive=False)))}


def need_spark(release: str, what: str) -> None:
    """Raises ServerMissingError on another release of Spark."""
    if not pyspark.__version__.startswith(release):
        raise ServerMissingError(
            f"{what} is for Spark {release[:3]}, and here is {pyspark.__version__}: "
            f"pip install 'pyspark=={release}'"
        )
