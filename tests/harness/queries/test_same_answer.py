"""The same question has the same answer: a right sink is never accused, a wrong one always of the
same, by the same faults. Hours on a small machine: nightly."""

from __future__ import annotations

import pytest

from bettong.scenarios.benchmarks.sinks import bench

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(4 * 3600)]


def test_a_hundred_verdicts_of_right_sinks_and_twenty_of_a_wrong_one() -> None:
    figures = bench(full=True)["figures"]
    assert figures["right_called_right"] == {"value": 100, "unit": "of 100"}
    assert figures["same_counterexamples"] == {"value": 20, "unit": "of 20"}
