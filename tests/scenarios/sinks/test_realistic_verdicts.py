"""Sinks as people publish them: each is the level that it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import spark_environments

pytest.importorskip("psycopg")

from bettong.scenarios.sinks.realistic import REALISTIC

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("sink", REALISTIC, ids=lambda sink: sink.__name__)
def test_its_level(sink: type, tmp_path: Path) -> None:
    with spark_environments(lambda event: None) as environments:
        target = f"{sink.__module__}:{sink.__name__}"
        result = check_one(Request(target, out=tmp_path), environments)
    if "skipped" in result.details:
        pytest.skip(result.details["skipped"])
    assert result.verdict != "unknown", result.reason
    assert result.guarantee == sink.level
