"""``bettong why``: explanations from a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness.cli.why_command import command
from bettong.harness.search.why import why
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result
from bettong.lineage.trace import MessageRange, TraceEvent, write_trace


def step(
    name: str, *causes: str, node: str = "driver", messages: tuple[int, int] | None = None
) -> list[TraceEvent]:
    carries = (MessageRange("lines", *messages),) if messages else ()
    return [TraceEvent(name, p, node, 1, causes, carries) for p in ("before", "after")]


TRACE = [
    *step("sender.send/lines/3", node="sender", messages=(0, 4)),
    *step("sender.send/lines/7", node="sender", messages=(4, 8)),
    *step("gateway.append/lines/3", "sender.send/lines/3", node="gateway", messages=(0, 4)),
    *step("gateway.append/lines/7", "sender.send/lines/7", node="gateway", messages=(4, 8)),
    *step("epoch=1/sink.open"),
    *step("batch=0/source.plan", "gateway.append/lines/7", messages=(0, 8)),
    *step("batch=0/p=0/a=0/source.read", "batch=0/source.plan", "gateway.append/lines/3"),
    *step("batch=0/sink.commit", "batch=0/p=0/a=0/source.read"),
    *step("receiver.commit/batch=0", "batch=0/sink.commit", node="receiver"),
]


def names(asked: str, *, dependents: bool = False) -> set[str]:
    return set(why(TRACE, asked, dependents=dependents).graph.nodes)


def test_an_output_is_explained_by_what_moved_its_own_message() -> None:
    found = names("lines/2.1")
    assert {"sender.send/lines/3", "gateway.append/lines/3", "receiver.commit/batch=0"} <= found
    assert "sender.send/lines/7" not in found  # it moved only others


def test_what_depended_on_a_step() -> None:
    found = names("gateway.append/lines/7", dependents=True)
    assert "receiver.commit/batch=0" in found
    assert "sender.send/lines/7" not in found


@pytest.mark.parametrize("asked", ["lines/99", "lines/99.0", "batch=0/sink.comit"])
def test_what_the_run_does_not_have_is_refused(asked: str) -> None:
    with pytest.raises(UsageError):
        why(TRACE, asked)


def test_a_misspelled_step_gets_the_nearest_right_one() -> None:
    with pytest.raises(UsageError, match=r"batch=0/sink\.commit"):
        why(TRACE, "batch=0/sink.comit")


def test_the_command_prints_steps_and_draws_them(tmp_path: Path) -> None:
    write_trace(tmp_path / "good.jsonl", TRACE)
    Result("x", "valid", details={"good_trace": "good.jsonl"}).write(tmp_path)
    picture = tmp_path / "why.svg"
    answer = CliRunner().invoke(command, [str(tmp_path), "lines/2.1", "--svg", str(picture)])
    assert answer.exit_code == 0
    assert "because of batch=0/sink.commit" in answer.stdout
    assert "<svg" in picture.read_text("utf-8")
    answer = CliRunner().invoke(command, [str(tmp_path), "lines/2.1", "--json"])
    assert json.loads(answer.stdout)["asked"] == "receiver.commit/batch=0"
