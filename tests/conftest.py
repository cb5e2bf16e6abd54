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
from xdist.scheduler import LoadGroupScheduling

from bettong.harness.spark.cache import ENV_CACHE, cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bettong.harness.backends.local import LocalBackend
    from bettong.harness.queries.run.environment import SparkEnvironments

# What each of these fixtures starts takes many seconds and hundreds of megabytes, and gets warm by
# use: the tests that share one run in one worker. Of container engines there may be but one: two
# workers that start containers would see to each other's rules of the network.
SHARED = ("engine", "environments", "spark_backend", "pool", "spark")
# Tests that change HOME share what is made once for a machine.
os.environ[ENV_CACHE] = str(cache_directory())

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", UNTIMED)
settings.register_profile("ci", UNTIMED, max_examples=50, derandomize=True, print_blob=True)
settings.register_profile("nightly", UNTIMED, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


class SharedScheduling(LoadGroupScheduling):
    """The tests of a group run in one worker, one after the other; so do those of a file."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    """A group for each fixture that tests of several files share."""
    if not item.config.pluginmanager.hasplugin("xdist") or not _starts_spark(item):
        return
    if item.get_closest_marker("xdist_group") is None:
        for name in SHARED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                return


@pytest.hookimpl(trylast=True)  # when what is not asked for is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long groups and files first, so that none is left alone at the end: an image takes minutes to
    build, a test that starts Spark as long as dozens of others."""
    weights = Counter[str]()
    for item in items:
        weights[_group(item)] += 50 if _starts_spark(item) else 1
    items.sort(key=lambda item: (_group(item) != "engine", -weights[_group(item)]))


def _starts_spark(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("spark", "image")))


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.args[0] if mark else item.path)


@pytest.hookimpl(optionalhook=True)  # of a plugin that may be turned off
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedScheduling | None:
    """With ``--dist loadgroup``, in the order of the collection."""
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return SharedScheduling(config, log)


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
