"""Limits of time grow with what else the machine does, to a bound, and never shrink."""

from __future__ import annotations

import os

import pytest

from bettong.harness.processes.patience import patience


@pytest.mark.parametrize(("load", "seconds"), [(0.0, 60), (1.9, 60), (4.0, 120), (20.0, 180)])
def test_a_limit_is_as_long_as_the_machine_makes_it(
    monkeypatch: pytest.MonkeyPatch, load: float, seconds: float
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert patience(60) == pytest.approx(seconds)
