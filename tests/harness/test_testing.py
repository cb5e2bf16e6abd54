from __future__ import annotations

import pytest

from bettong.harness import testing
from bettong.harness.testing import assert_effectively_once, target_of
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, Counterexample, Result


class Orders:
    pass


orders = Orders()


def test_targets_of_classes_and_objects() -> None:
    assert target_of("format:parquet") == "format:parquet"
    assert target_of(Orders) == f"{__file__}:Orders"
    assert target_of(orders) == f"{__file__}:orders"


def test_what_no_other_process_can_load() -> None:
    class Inner:
        pass

    for sink in (Inner, Inner(), Orders()):
        with pytest.raises(UsageError, match="not at the top of a module"):
            target_of(sink)


def test_a_sink_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    from bettong.harness.queries import check

    anomaly = Anomaly("Duplicate", ("in/3",), "k", {"times": 1}, {"times": 2}, "distant")
    example = Counterexample(("crash(driver, before batch=0/commits)",), (anomaly,), replay="again")
    asked = []

    def check_sink(target: str, **options: object) -> Result:
        asked.append((target, options))
        return Result(scenario="Orders", verdict="invalid", counterexamples=(example,))

    monkeypatch.setattr(check, "check_sink", check_sink)
    with pytest.raises(AssertionError) as failure:
        assert_effectively_once(Orders, expect="at-least-once")
    assert asked == [(f"{__file__}:Orders", {"expect": "at-least-once"})]
    reported = str(failure.value)
    assert "minimal faults: crash(driver, before batch=0/commits)" in reported
    assert "Duplicate in/3 (key k): distant" in reported
    assert "replay: again" in reported
    assert testing.failure_text(Result(scenario="s", verdict="unknown")).startswith("s: unknown")
