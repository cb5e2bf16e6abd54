"""What all tests of check-sink share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bettong.harness.queries.run.environment import SparkEnvironments, spark_environments


@pytest.fixture(scope="session")
def environments() -> Iterator[SparkEnvironments]:
    with spark_environments(print) as environments:
        yield environments
