"""A driver that stands still while another one takes its place, on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING

pytestmark = pytest.mark.spark


def test_a_moment_that_does_not_come_on_spark_keeps_no_zombie(
    spark_backend: LocalBackend, tmp_path: Path
) -> None:
    """Spark tells a source once that a batch is done, whoever does the next one."""
    schedule = Schedule.parse(
        "faults: [{pause: {node: driver, from: batch=0/source.commit, "
        "until: batch=0/source.commit#2, replace: true}}]"
    )
    asked = Asked(again=set(), power_cut=True, spares_jvm=True)
    run = run_once(spark_backend, COUNTING, schedule, tmp_path, asked)
    assert (run.outcome, run.not_fired) == ("good", ())
    (evidence,) = run.evidence.values()
    assert "all others had done their work before its moment came" in evidence
