"""What all tests of check-sink share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bettong.harness.queries.run.environment import ArenaFor, spark_environments


@pytest.fixture(scope="module")
def arena_for() -> Iterator[ArenaFor]:
    with spark_environments(print) as arena_for:
        yield arena_for
