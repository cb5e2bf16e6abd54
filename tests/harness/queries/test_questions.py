"""What is asked about a sink in a call of Python's: a mistake is one clear error, never a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bettong.harness.queries.check import check_sink, expect_within, source_of
from bettong.harness.queries.faults.operations import NEW_CHECKPOINT, NEW_ROWS, ODD
from bettong.harness.queries.request import Request, ask
from bettong.harness.queries.sink.loading import load_target
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


@pytest.mark.parametrize("name", ["batches", "batch_rows"])
@pytest.mark.parametrize("value", [3, 0, True, 10**6, "12", 12.0, None])
def test_so_many_batches_and_rows_as_a_check_can_have(
    tmp_path: Path, name: str, value: object
) -> None:
    path = tmp_path / "s.py"
    path.write_text(
        "from bettong.harness import Sink\n"
        f"class S(Sink):\n    {name} = {value!r}\n"
        "    def write(self, rows, env): ...\n    def read(self, env): ...\n"
    )
    with pytest.raises(UsageError, match=rf"{name} is .*: give a whole number from \d+ to \d+"):
        load_target(f"{path}:S", {})


def test_a_sink_is_given_as_much_as_it_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(
        "from bettong.harness import Sink, foreach_batch_sink\n"
        "class S(Sink):\n    batches, batch_rows = 12, 1000\n"
        "    def write(self, rows, env): ...\n    def read(self, env): ...\n"
        "class Bare:\n    def write(self, rows, env): ...\n    def read(self, env): ...\n"
        "made = foreach_batch_sink(print, read=print, batches=5, batch_rows=30)\n"
    )
    made = [source_of(load_target(f"{path}:{name}", {})) for name in ("S", "Bare", "made")]
    assert made == [Input(12, 1000), Input(), Input(5, 30)]


def test_what_is_no_fault_goes_by_the_rows_of_the_sink() -> None:
    wide = Input(12, 1000)
    assert wide.batch_of(ODD.input(wide, 1).odd_id) == 2
    assert NEW_ROWS.again(wide).first == 12
    assert NEW_ROWS.expected(wide).batches == 24
    assert (ODD.input(Input(), 1).odd, NEW_CHECKPOINT.again(wide)) == (45, wide)
