"""Shipped sinks under faults that are chosen for them: what each then shows."""

from __future__ import annotations

import pytest

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments

REPLAYED = "crash(driver, before batch=1/commits)"
FAILED_TASK = "storage(EIO, after batch=1/stage=0/p=0/a=0/task)"


def seen(environments: SparkEnvironments, name: str, fault: str) -> set[str]:
    """Kinds of anomalies that a fault leads to; what the machine lacks skips the test."""
    request = Request(name if "/" in name else f"bettong.scenarios.sinks.{name}", only=(fault,))
    result = check_one(request, environments, print)
    if "skipped" in result.details:
        pytest.skip(f"{name} {result.reason}")
    assert result.verdict in ("valid", "invalid"), result.reason
    assert result.coverage.injected == 1
    assert (result.verdict == "invalid") == bool(result.counterexamples)
    return {a.kind for found in result.counterexamples for a in found.anomalies}
