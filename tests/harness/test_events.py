"""The one stream of events: what a question emits from its beginning to its answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness import Crash, Point
from bettong.harness.api import run_scenario
from bettong.harness.backends.local import LocalBackend
from bettong.harness.cli.output import Output
from bettong.harness.cli.run_command import command
from bettong.harness.events import (
    CounterexampleFound,
    Event,
    FaultInjected,
    Finished,
    RunJudged,
    RunStarted,
    SearchAdvanced,
    Started,
    StepTaken,
    broadcast,
    search_events,
)
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.results import Result
from bettong.lineage.search.loop import search
from bettong.scenarios.protocols.delivery import Retry

CRASH = Crash("driver", Point("batch=1/sink.commit", "after"))


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """What a broken scenario emits under the fault that shows it."""
    events: list[Event] = []
    with LocalBackend(runner="in-process") as backend:
        run_scenario(
            "sink_commits_again",
            Schedule((CRASH,)),
            backend=backend,
            out=tmp_path_factory.mktemp("out"),
            on_event=events.append,
        )
    return events


def test_a_question_begins_and_ends_with_its_subject(stream: list[Event]) -> None:
    assert stream[0] == Started("sink_commits_again", "scenario")
    last = stream[-1]
    assert isinstance(last, Finished) and last.out is not None
    assert Result.read(last.out / "result.json") == last.result


def test_each_run_is_started_and_judged_once(stream: list[Event]) -> None:
    began = [e.run for e in stream if isinstance(e, RunStarted)]
    ended = [e.run for e in stream if isinstance(e, RunJudged)]
    assert began == ended and len(set(began)) == len(began)
    result = stream[-1].result  # type: ignore[union-attr]
    assert [e.judged for e in stream if isinstance(e, RunJudged)] == list(result.runs)


def test_steps_are_those_of_the_trace_and_faults_come_with_evidence(stream: list[Event]) -> None:
    assert any(isinstance(e, StepTaken) and e.step.step == CRASH.at.step for e in stream)
    injected = [e for e in stream if isinstance(e, FaultInjected)]
    assert {e.fault for e in injected} == {CRASH.id}
    assert all(e.evidence for e in injected)
    (found,) = [e for e in stream if isinstance(e, CounterexampleFound)]
    assert found.counterexample.faults == (CRASH.id,)


def test_a_search_says_how_far_it_has_come() -> None:
    program = Simulation(Retry())
    spec = FailureSpec(program.nodes, 6, 3, 1)
    seen: list[Event] = []
    findings = search(
        RoundExecutor(program, spec),
        spec.bounds,
        find_all=True,
        on_event=search_events(seen.append),
    )
    kinds = Counter(type(e) for e in seen)
    assert kinds[RunJudged] == findings.coverage.executions
    last = [e for e in seen if isinstance(e, SearchAdvanced)][-1]
    assert last.executions == findings.coverage.executions
    assert last.violations == findings.coverage.violated
    assert last.hypotheses == findings.coverage.hypotheses


def test_every_handler_is_given_every_event() -> None:
    first: list[Event] = []
    second: list[Event] = []
    broadcast(first.append, second.append)(Started("x", "sink"))
    assert first == second == [Started("x", "sink")]


def test_the_terminal_json_and_reports_are_made_of_the_same_answer(
    stream: list[Event], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = stream[-1]
    assert isinstance(answer, Finished)
    reported = Finished(answer.result, tmp_path)
    with Output() as output:
        output(reported)
    assert output.exit_code() == 1
    shown = capsys.readouterr().out
    assert "✘ sink_commits_again: invalid" in shown and f"faults: {CRASH.id}" in shown
    assert {"report.html", "report.md", "junit.xml"} <= {p.name for p in tmp_path.iterdir()}
    with Output(as_json=True) as output:
        output(reported)
    assert capsys.readouterr().out.startswith("{")


def test_a_suite_s_results_are_printed_as_a_list_of_json(tmp_path: Path) -> None:
    words = ["doubling", "word_count", "--runner", "in-process", "--json", "--out", str(tmp_path)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert done.output.lstrip().startswith("[")
