"""``bettong start`` as a service on a live feed, on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_service import check_goes_on, check_in_time

pytestmark = pytest.mark.spark


def test_outputs_show_whatever_is_silent_and_signals_end_the_run(tmp_path: Path) -> None:
    check_goes_on(tmp_path, "spark")


@pytest.mark.slow  # on a machine with other work a batch of Spark takes seconds
def test_outputs_show_within_two_seconds(tmp_path: Path) -> None:
    check_in_time(tmp_path, "spark")
