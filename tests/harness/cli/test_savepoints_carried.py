"""A savepoint carried to another checkpoint, by the command, on both runners."""

from __future__ import annotations

from pathlib import Path

import pytest
from savepoint_service import check_savepoint


def test_a_run_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    check_savepoint(tmp_path, "in-process")


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_run_on_spark_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    check_savepoint(tmp_path, "spark")
