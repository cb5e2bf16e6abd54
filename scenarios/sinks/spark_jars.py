"""Jars that a sink needs in Spark's JVM, by Maven, as session settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyspark

from bettong.harness.servers import ServerMissingError, jars

# The connector has no release for 4.3; that for 4.2 works there.
_KAFKA_CONNECTOR = {"4.1": "4.1.3"}


def spark_jars(*coordinates: str) -> Mapping[str, str]:
    """``spark.jars`` with just these jars, without what they depend on.

    Raises ServerMissingError without Maven."""
    return {"spark.jars": ",".join(map(str, jars(coordinates, transitive=False)))}


def kafka_connector() -> Sequence[str]:
    """Spark's own Kafka source and sink, for the pyspark that is here."""
    version = _KAFKA_CONNECTOR.get(pyspark.__version__[:3], "4.2.0")
    return (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    )


def need_spark(release: str, what: str) -> None:
    """Raises ServerMissingError on another release of Spark."""
    if not pyspark.__version__.startswith(release):
        raise ServerMissingError(
            f"{what} is for Spark {release[:3]}, and here is {pyspark.__version__}: "
            f"pip install 'pyspark=={release}'"
        )
