"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=nightly`` tries many more examples.

Examples are timed nowhere: a busy machine makes no test fail.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from bettong.harness.spark.cache import ENV_CACHE, cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bettong.harness.backends.local import LocalBackend
    from bettong.harness.queries.run.environment import SparkEnvironments

# Of container engines there may be but one: two workers that start containers would see to each
# other's rules of the network.
CONTAINERS = "harness/backends/docker"
# Tests that change HOME share what is made once for a machine.
os.environ[ENV_CACHE] = str(cache_directory())

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", UNTIMED)
settings.register_profile("ci", UNTIMED, max_examples=50, derandomize=True, print_blob=True)
settings.register_profile("nightly", UNTIMED, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


class FileScheduling(LoadScopeScheduling):
    """The tests of a file run in one worker, and so do all those that start containers."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


@pytest.hookimpl(trylast=True)  # when what is not asked for is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts containers first, and long files, so that none is left alone at the end: an image
    takes minutes to build, a test that starts Spark as long as dozens of others."""
    weights = Counter[str]()
    for item in items:
        weights[_scope(item.nodeid)] += 50 if _starts_spark(item) else 1
    items.sort(key=lambda i: (_scope(i.nodeid) != CONTAINERS, -weights[_scope(i.nodeid)]))


def _starts_spark(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("spark", "image")))


def _scope(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return CONTAINERS if f"{CONTAINERS}/" in file else file


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
def backend() -> Iterator[LocalBackend]:
    """Processes of this machine as nodes, without Spark: the same for all runs."""
    from bettong.harness.backends.local import LocalBackend

    with LocalBackend(runner="in-process") as backend:
        yield backend


@pytest.fixture(scope="session")
def spark_backend() -> Iterator[LocalBackend]:
    """The same with Spark: its warm drivers too."""
    from bettong.harness.backends.local import LocalBackend

    with LocalBackend() as backend:
        yield backend


@pytest.fixture(scope="session")
def environments() -> Iterator[SparkEnvironments]:
    """Where sinks and jobs are run: the same sessions for all tests."""
    from bettong.harness.queries.run.environment import spark_environments

    with spark_environments(print) as environments:
        yield environments
