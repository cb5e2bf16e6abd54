"""``bettong start`` as a service on a live feed, on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_service import check

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_outputs_show_within_two_seconds_and_signals_end_the_run(tmp_path: Path) -> None:
    check(tmp_path, "spark")
