"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=nightly`` tries many more examples.

Examples are timed nowhere: a busy machine makes no test fail.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from bettong.harness.spark.cache import ENV_CACHE, cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bettong.harness.queries.run.environment import SparkEnvironments

CONTAINERS = "harness/backends/docker/"

# Tests that change HOME share what is made once for a machine.
os.environ[ENV_CACHE] = str(cache_directory())

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


class FileScheduling(LoadFileScheduling):
    """Tests of a file share what it starts. Those that start containers share an engine: two at
    once would see to each other's rules of the network."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return CONTAINERS if CONTAINERS in file else file


@pytest.hookimpl(trylast=True)  # when what is not asked for is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that none is left alone at the end: an image takes minutes to build,
    and of the others those with more tests take longer."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (CONTAINERS not in item.nodeid, -tests[item.path]))


@pytest.hookimpl(optionalhook=True)  # of a plugin that may be turned off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """With ``--dist loadfile``, in the order of the collection."""
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process: there is but one, so that tests share it and nobody else ends it."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.python.authenticate.socketTimeout", "2m")  # machines can be busy
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def environments() -> Iterator[SparkEnvironments]:
    """Where sinks and jobs are run: the same sessions for all tests."""
    from bettong.harness.queries.run.environment import spark_environments

    with spark_environments(print) as environments:
        yield environments
