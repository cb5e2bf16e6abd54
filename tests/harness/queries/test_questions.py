"""What is asked about a sink in a call of Python's: a mistake is one clear error, never a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bettong.harness.queries.check import check_sink, expect_within
from bettong.harness.queries.request import Request, ask
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.errors import UsageError
from bettong.lineage.search.loop import Budget


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"faults": 0}, "faults=0: give a whole number, at least 1"),
        ({"faults": True}, "faults=True"),
        ({"window": 0}, "window=0"),
        ({"window": 2.0}, r"window=2\.0"),
        ({"budget": "2m"}, r"budget='2m': give a Budget, such as Budget\.parse\('5m'\)"),
        ({"only": "crash(driver, before batch=1/commits)"}, "only='crash.*: give a tuple"),
        ({"also": ("new-checkpiont",)}, "new-checkpoint"),
        (
            {"also": ("new-checkpoint",), "only": ("empty(batch=2)",)},
            r"new-checkpoint is not asked beside one fault set \(empty\(batch=2\)\)",
        ),
        ({"out": "result"}, "out='result': give a Path"),
        ({"expect": "exactly-once"}, "exactly-once"),
        ({"endpoints": ["db=127.0.0.1:5432"]}, "endpoints="),
        ({"budgett": Budget()}, "argument 'budgett'.*budget|budgett.*did you mean budget"),
    ],
)
def test_a_mistake_is_one_clear_error(mistake: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_sink("sinks.py:Mine", **mistake)


def test_a_sink_itself_is_no_target() -> None:
    with pytest.raises(UsageError, match=r"give a text, such as 'mysink\.py:MySink'"):
        check_sink(object)  # type: ignore[arg-type]


def test_faults_fire_in_batches_that_there_are() -> None:
    expect_within(Request("s.py:S", window=Input().batches), Input())
    with pytest.raises(UsageError, match="window=5: a run has 4 batches"):
        expect_within(Request("s.py:S", window=5), Input())


def test_what_is_right_is_asked(tmp_path: Path) -> None:
    asked = ask("s.py:S", faults=1, budget=Budget(runs=3), out=tmp_path, also=("new-checkpoint",))
    assert (asked.faults, asked.out, asked.also) == (1, tmp_path, ("new-checkpoint",))
