"""What is expected of a run does not hang on what ran before it in the same process, and of
functions that give another result each time nothing is expected."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.harness.backends.local import LocalBackend
from bettong.harness.checkers.oracle import OracleError
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.carried import Asked
from bettong.harness.runs.interpreting import interpreted, not_repeatable
from bettong.harness.runs.record import RunRecord
from bettong.harness.runs.run import run_once
from bettong.scenarios.counting import COUNTING

APPLICATIONS = """
import os, random, time
from dataclasses import dataclass
from bettong.engine import (
    application, computation, decoder, encoder, key_extractor, sink, source, state_computation
)

@dataclass
class Total:
    value: int = 0

@decoder
def number(data: bytes) -> int:
    return int(data)

@key_extractor
def parity(value: int) -> int:
    return value % 2

@state_computation(state=Total)
def add(value: int, total: Total) -> int:
    total.value += value
    return total.value

@encoder
def text(value: int) -> bytes:
    return b"%d" % value

_met = []

@computation
def right(value: int) -> int:
    print("what a function prints is no answer")
    return value

@computation
def remembered(value: int) -> int:
    _met.append(value)
    return sum(_met)

@computation
def by_chance(value: int) -> int:
    return random.randrange(1 << 60)

@computation
def by_set(value: int) -> int:
    return int(next(iter({f"{value}{n}" for n in range(64)})))

@computation
def by_day(value: int) -> int:
    return value + time.gmtime().tm_year

@computation
def ends(value: int) -> int:
    os._exit(7)

@computation
def fails(value: int) -> int:
    raise ValueError("no such value")

def with_step(step):
    steps = source("lines", number).to(step).key_by(parity).to(add).to_sink(sink("sums", text))
    return application(step.name, steps)

for step in (right, remembered, by_chance, by_set, by_day, ends, fails):
    globals()[f"{step.name}_app"] = with_step(step)
"""
MESSAGES = {"lines": [b"1", b"2", b"3", b"4"]}
ENDS = [{"lines": 4}]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of applications that every process can import."""
    name = "applications_of_a_user"
    (tmp_path / f"{name}.py").write_text(APPLICATIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def outputs(application: str, messages: dict[str, list[bytes]] = MESSAGES) -> list[bytes]:
    found = interpreted(application, messages, [{"lines": len(messages["lines"])}])
    return [output.data for output in found.outputs]


def test_the_outputs_and_the_state_of_an_application(module: str) -> None:
    found = interpreted(f"{module}:right_app", MESSAGES, ENDS)
    assert [(o.id, o.key, o.data) for o in found.outputs] == [
        ("lines/0", 1, b"1"),
        ("lines/1", 0, b"2"),
        ("lines/2", 1, b"4"),
        ("lines/3", 0, b"6"),
    ]
    assert {key: total.value for key, total in found.state["Total"].items()} == {1: 4, 0: 6}


def test_what_a_function_remembers_of_other_runs_is_not_expected(module: str) -> None:
    remembered = f"{module}:remembered_app"
    shorter = {"lines": MESSAGES["lines"][:3]}
    assert outputs(remembered, shorter) == outputs(remembered)[:3] == [b"1", b"4", b"6"]


@pytest.mark.parametrize("step", ["right", "remembered"])
def test_fresh_processes_agree(module: str, step: str) -> None:
    assert not not_repeatable(f"{module}:{step}_app", MESSAGES, ENDS)


@pytest.mark.parametrize("step", ["by_chance", "by_set", "by_day"])
def test_results_by_chance_by_the_order_of_a_set_and_by_the_day_are_not_repeatable(
    module: str, step: str
) -> None:
    assert "in another process on another day" in not_repeatable(
        f"{module}:{step}_app", MESSAGES, ENDS
    )


@pytest.mark.parametrize(("step", "said"), [("ends", "status 7"), ("fails", "no such value")])
def test_a_function_that_fails_is_named(module: str, step: str, said: str) -> None:
    with pytest.raises(OracleError, match=said):
        interpreted(f"{module}:{step}_app", MESSAGES, ENDS)


@pytest.fixture
def backend(module: str) -> Iterator[LocalBackend]:
    """One whose processes can import the module, which those of an earlier one cannot."""
    with LocalBackend(runner="in-process") as backend:
        yield backend


def run(backend: LocalBackend, folder: Path, application: str, faults: str = "") -> RunRecord:
    scenario = replace(
        COUNTING,
        application=application,
        stream="lines",
        input=lambda: b"1\n2\n3\n4\n",
        batch=2,
        rows={},
    )
    schedule = Schedule.parse(f"faults: [{faults}]")
    return run_once(backend, scenario, schedule, folder, Asked(replay=False))


@pytest.mark.parametrize("step", ["by_chance", "by_day"])
def test_of_outputs_by_chance_or_by_the_day_nothing_can_be_told(
    backend: LocalBackend, tmp_path: Path, module: str, step: str
) -> None:
    seen = run(backend, tmp_path / "run", f"{module}:{step}_app")
    assert seen.outcome == "unknown"
    assert "do not give the same results each time" in seen.note


def test_a_function_that_remembers_is_right_until_its_process_dies(
    backend: LocalBackend, tmp_path: Path, module: str
) -> None:
    application = f"{module}:remembered_app"
    assert run(backend, tmp_path / "a", application).outcome == "good"
    assert run(backend, tmp_path / "b", application).outcome == "good"
    crash = "{crash: {node: driver, before: batch=1/sink.commit}}"
    seen = run(backend, tmp_path / "c", application, crash)
    assert seen.outcome == "violation"
    assert {a.kind for a in seen.anomalies} == {"Corrupt"}
