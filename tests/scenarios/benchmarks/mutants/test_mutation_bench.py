"""The bench of mutants: what is drawn, what processes load, what is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from bettong.lineage.errors import UsageError
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.mutants import bench, overlay, page, population, searching
from bettong.scenarios.benchmarks.mutants.executed import (
    Executed,
    Recorder,
    UnderFault,
    executed,
    failure,
    marked,
)
from bettong.scenarios.benchmarks.mutants.judge import Finding, Question, judge, turns
from bettong.scenarios.benchmarks.mutants.operators import Mutant
from bettong.scenarios.benchmarks.mutants.score import scores
from bettong.scenarios.benchmarks.mutants.searching import Bench, Judged

LEDGER = "engine/receiver/ledger.py"
SORT = ("crash", ("receiver",), "receiver.commit/batch=N")


def mutant_of(path: str, part: str) -> Mutant:
    return next(m for m in population.population(path) if part in m.id)


def test_a_client_that_is_missing_is_told_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kafka.admin", None)
    with pytest.raises(UsageError, match="pip install 'bettong\\[kafka\\]'"):
        bench(out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_process_loads_the_mutated_module_and_the_right_rest(tmp_path: Path) -> None:
    mutant = mutant_of(LEDGER, "drop the guard")
    source = overlay.source_of(LEDGER)
    overlay.build(tmp_path, {LEDGER: mutant.applied(source)})
    overlay.check(tmp_path, LEDGER)
    assert overlay.source_of(LEDGER) == source  # the installed package is as it was
    with pytest.raises(WrongResultError, match="not from"):
        overlay.check(tmp_path / "elsewhere", LEDGER)


def test_statements_report_that_they_were_run(tmp_path: Path) -> None:
    source = (
        '"""Said."""\nfrom __future__ import annotations\n\n\ndef f(n: int) -> int:\n'
        '    """Doc."""\n    if n:\n        return 1\n'
        "    elif n < 0:\n        return 2\n    return 3\n"
    )
    (tmp_path / "m.py").write_text(marked("m.py", source))
    recorder = "def marks(path, size):\n    return MARKS\nMARKS = {}\n"
    (tmp_path / "bettong_executed.py").write_text(recorder)
    reported = subprocess.run(
        [sys.executable, "-c", "import m, bettong_executed as e; m.f(0); print(sorted(e.MARKS))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(reported) == [6, 10]  # the condition in line 7, the answer in line 11


def test_a_recording_says_on_which_node_and_in_which_step_a_statement_is_run(
    tmp_path: Path,
) -> None:
    recorder = Recorder(tmp_path / "marked", "engine")
    program = (
        "import os\n"
        "from bettong.engine import steps\n"
        "from bettong.engine.ids import parse_id\n"
        "trace = os.path.join(os.environ['TRACES'], 'trace')\n"
        "steps.install(steps.Instrumentation(node='gateway', trace=trace))\n"
        "parse_id('lines/1')\n"
        "with steps.step('gateway.append/lines/1'):\n"
        "    if os.fork() == 0:\n"
        "        parse_id('lines/2')\n"
        "        os._exit(9)\n"
        "    os.wait()\n"
        "path = os.path.join(os.environ['TRACES'], 'none', 'file')\n"
        "from bettong.engine.storage.disk import OS_DISK\n"
        "from pathlib import Path\n"
        "try:\n"
        "    OS_DISK.remove(Path(path))\n"
        "except FileNotFoundError:\n"
        "    pass\n"
    )
    env = {**os.environ, **recorder.environment, "TRACES": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    taken = recorder.take()
    moments = set().union(*taken["engine/ids.py"].values())
    assert moments == {("gateway", ""), ("gateway", "gateway.append/lines/1")}
    ran = taken["engine/storage/disk.py"].keys()
    failed = [line for line in ran if line > 0 and failure(line) in ran]
    assert [source_line("engine/storage/disk.py", line) for line in failed] == ["path.unlink()"]
    assert recorder.take() == {}


def source_line(path: str, line: int) -> str:
    return overlay.source_of(path).splitlines()[line - 1].strip()


@pytest.mark.parametrize("path", ["engine/steps.py", "engine/ingest/gateway.py"])
def test_marks_leave_a_module_one_that_compiles(path: str) -> None:
    compile(marked(path, overlay.source_of(path)), path, "exec")


def test_a_sample_is_even_over_the_operators_and_the_beginning_of_a_larger_one() -> None:
    mutants = population.population("engine/receiver")
    drawn = population.draw(mutants, 24, seed=3)
    kinds = {m.kind for m in mutants}
    assert {m.kind for m in drawn} == kinds
    assert list(population.draw(mutants, 10, seed=3)) == list(drawn[:10])
    assert population.draw(mutants, 24, seed=4) != drawn
    assert len(population.draw(mutants, None, seed=0)) == len(mutants)


def test_mutants_of_one_operator_are_chosen_by_its_name() -> None:
    mutants = population.population("engine/receiver")
    chosen = population.of_operator(mutants, "delete durable call")
    assert chosen == [m for m in mutants if m.kind == "delete durable call"] != []
    with pytest.raises(UsageError, match=r"--operator delete it: .* choose of .*delete durable"):
        population.of_operator(mutants, "delete it")


def test_right_sinks_are_mutated_and_judged_by_check_sink() -> None:
    found = population.population("scenarios/sinks/files.py")
    targets = population.sinks_of("scenarios/sinks/files.py")
    assert found and targets
    assert all(target.startswith("bettong.scenarios.sinks.files:") for target in targets)


def test_a_wrong_path_is_refused() -> None:
    with pytest.raises(UsageError, match="no such module"):
        population.population("engine/storag")


def test_every_equivalent_mutant_is_there_and_has_a_reason() -> None:
    mutants = population.population()
    for pattern, reason in population.equivalents().items():
        assert len(reason) > 20
        assert any(population.equivalent(m, {pattern: reason}) for m in mutants), pattern


def recorded(mutant: Mutant) -> dict[str, Executed]:
    here = {mutant.path: {mutant.statement: frozenset({("receiver", "receiver.commit/batch=0")})}}
    led_to = {"crash(a)": UnderFault(SORT, {mutant.path: frozenset({mutant.statement})})}
    return {
        "visits": Executed({}, frozenset({"crash(a)"}), led_to),
        "counting_into_kafka": Executed(here),
        "counting": Executed(here, frozenset({"crash(b)"})),
        "doubling": Executed(here),
        "word_count": Executed({"engine/ids.py": {1: frozenset()}}),
    }


def test_a_mutant_is_searched_where_it_is_run(tmp_path: Path) -> None:
    mutant = mutant_of(LEDGER, "delete append")
    bench = Bench(tmp_path, recorded(mutant), "standard", 60.0, 1)
    assert bench.scenarios_of(mutant) == ["counting", "doubling", "visits"]
    assert bench.is_run(mutant)
    more = Executed({mutant.path: {n: frozenset() for n in (mutant.statement, 1, 2)}})
    bench = Bench(tmp_path, {**recorded(mutant), "doubling": more}, "standard", 60.0, 1)
    assert bench.scenarios_of(mutant) == ["doubling", "counting", "visits"]
    with_broker = {"counting_into_kafka": recorded(mutant)["counting"]}
    bench = Bench(tmp_path, with_broker, "standard", 60.0, 1)
    assert bench.scenarios_of(mutant) == ["counting_into_kafka"]
    assert not Bench(tmp_path, {}, "standard", 60.0, 1).is_run(mutant)


def test_what_runs_of_a_module_what_few_others_run_is_searched_first(tmp_path: Path) -> None:
    mutant = mutant_of(LEDGER, "delete append")
    lines = {"counting": {1}, "doubling": {1}, "visits": {2}}
    runs = {
        name: Executed({mutant.path: {n: frozenset() for n in {mutant.statement, *more}}})
        for name, more in lines.items()
    }
    bench = Bench(tmp_path, runs, "standard", 60.0, 1)
    assert bench.scenarios_of(mutant) == ["visits", "counting", "doubling"]


def test_where_no_more_than_its_line_is_run_a_mutant_is_searched_last(tmp_path: Path) -> None:
    mutant = mutant_of(LEDGER, "drop the guard")
    assert mutant.line != mutant.statement
    beside = Executed({mutant.path: {n: frozenset() for n in (mutant.line, 1, 2, 3)}})
    bench = Bench(tmp_path, {**recorded(mutant), "readings": beside}, "standard", 60.0, 1)
    assert bench.scenarios_of(mutant) == ["counting", "doubling", "visits", "readings"]
    assert not Bench(tmp_path, {"readings": beside}, "standard", 60.0, 1).is_run(mutant)


def test_what_swallows_an_exception_is_run_where_there_is_one(tmp_path: Path) -> None:
    mutant = mutant_of(LEDGER, "swallow exception: self._log.append(_OPEN")
    here = recorded(mutant)
    assert not Bench(tmp_path, here, "standard", 60.0, 1).is_run(mutant)
    lines = {mutant.path: frozenset({failure(mutant.statement)})}
    failing = Executed(here["doubling"].clean, under_faults={"storage": UnderFault(SORT, lines)})
    bench = Bench(tmp_path, {**here, "doubling": failing}, "standard", 60.0, 1)
    assert bench.is_run(mutant)
    assert bench.scenarios_of(mutant) == ["doubling", "counting", "visits"]


def test_a_bench_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = population.population(LEDGER)[:2]
    asked: list[Question] = []

    def answer(question: Question) -> Finding:
        asked.append(question)
        return Finding("killed", "counting", ("crash(driver)",), ("Loss",), 7, 3.5)

    monkeypatch.setattr(searching, "_asked", answer)
    here = recorded(first)
    moved = {n: Executed({**e.clean, **recorded(second)[n].clean}) for n, e in here.items()}
    bench = Bench(tmp_path, moved, "standard", 60.0, 1, [("shipped",)])
    assert [one.finding.runs for one in bench.judge([first], lambda _: None)] == [7]
    both = list(bench.judge([first, second], lambda _: None))
    assert len(asked) == 2
    assert [one.mutant for one in both] == [first, second]
    shipped, killer = frozenset({"shipped"}), frozenset({"crash(driver)"})
    assert asked[0].trails["counting"].shown == [shipped]
    assert asked[1].trails["counting"].shown == [killer, shipped]
    list(Bench(tmp_path, {}, "quick", 60.0, 1).judge([first], lambda _: None))
    assert len(asked) == 3  # other bounds, another question


def test_the_score_counts_only_what_a_search_can_find(tmp_path: Path) -> None:
    mutants = population.population(LEDGER)
    ends = ("killed", "survived", "aborted", "fails without a fault", "killed")
    judged = [
        Judged(m, Finding(end, "counting", ("crash(x)",), ("Loss",), 10 * n, float(n)))  # type: ignore[arg-type]
        for n, (m, end) in enumerate(zip(mutants, ends, strict=False))
    ]
    modules, whole = scores(mutants, mutants[:20], judged)
    assert [score.module for score in modules] == ["engine/receiver"]
    assert (whole.killed, whole.counted, whole.ratio) == (2, 4, 0.5)
    assert whole.never_run == len(mutants) - 20
    assert (whole.runs_to_kill, whole.seconds_to_kill) == (20.0, 2.0)
    table = page.markdown(modules, whole)
    assert f"- `{mutants[1].id}`: survived after 10 runs" in table
    page.write(tmp_path / "page.html", modules, whole)
    written = (tmp_path / "page.html").read_text()
    assert "Mutants: 2 of 4 found" in written
    assert "-&gt;" in written and "-> None" not in written  # what is of the code is escaped


@pytest.mark.parametrize(
    ("number", "order"), [(1, [0, 0, 0]), (2, [0, 1, 0, 1]), (4, [0, 1, 0, 2, 0, 3, 0, 1])]
)
def test_the_first_scenario_has_every_other_turn_and_each_of_the_rest_one(
    number: int, order: list[int]
) -> None:
    assert list(islice(turns(number, set()), len(order))) == order


def test_a_scenario_that_is_over_has_no_turn_and_in_the_end_none_has() -> None:
    over: set[int] = set()
    drawn = []
    for scenario in turns(3, over):
        drawn.append(scenario)
        over.add(scenario)
    assert sorted(drawn) == [0, 1, 2]


@pytest.mark.slow
def test_what_fails_by_itself_where_no_time_is_left_for_a_search_does_not_count(
    tmp_path: Path,
) -> None:
    """That no version of the state is removed is seen where few are kept."""
    mutant = mutant_of("engine/batch/protocol.py", "delete call: self._housekeeper.after")
    source = overlay.source_of(mutant.path)
    overlay.build(tmp_path, {mutant.path: mutant.applied(source)})
    scenarios = ("counting", "doubling", "counting_merging")
    found = judge(Question(overlay.in_front(tmp_path), scenarios, (), "standard", 20.0))
    assert (found.status, found.shown_by) == ("fails without a fault", "counting_merging")


@pytest.mark.slow
def test_a_search_that_has_not_begun_is_no_failure_without_a_fault(tmp_path: Path) -> None:
    overlay.build(tmp_path, {})
    found = judge(Question(overlay.in_front(tmp_path), ("counting",), (), "standard", 1.0))
    assert (found.status, found.complete) == ("survived", False)
    assert "counting: " in found.note


@pytest.mark.slow
@pytest.mark.servers
def test_a_mistake_in_a_kafka_sink_is_found(tmp_path: Path) -> None:
    path = "engine/sinks/kafka.py"
    mutant = next(m for m in population.population(path) if "drop the guard: batch in" in m.id)
    overlay.build(tmp_path, {path: mutant.applied(overlay.source_of(path))})
    scenarios = ("counting_into_kafka",)
    found = judge(Question(overlay.in_front(tmp_path), scenarios, (), "standard", 600.0))
    assert (found.status, found.shown_by) == ("killed", "counting_into_kafka")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "status", "by_faults"),
    [
        ("Ledger.commit drop the guard: self.is_committed(batch)", "killed", False),
        ("delete append: self._log.append(_COMMIT", "killed", False),
        ("Ledger.__init__ return early", "fails without a fault", False),
    ],
)
def test_a_search_finds_a_mutant(tmp_path: Path, part: str, status: str, by_faults: bool) -> None:
    """The first two break at any start of the receiver, also at that after the last batch, which is
    the answer where the first faults have not shown it."""
    mutant = mutant_of(LEDGER, part)
    overlay.build(tmp_path, {LEDGER: mutant.applied(overlay.source_of(LEDGER))})
    before = os.environ.get("PYTHONPATH")
    question = Question(overlay.in_front(tmp_path), ("counting_two",), (), "standard", 900.0)
    found = judge(question)
    assert found.status == status
    assert bool(found.faults) == by_faults
    assert os.environ.get("PYTHONPATH") == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "part", "scenario"),
    [
        ("engine/storage/log.py", "_only_zeros negate answer", "counting"),
        ("engine/batch/protocol.py", "commit swallow exception: sink.commit", "counting_to_files"),
        ("engine/sinks/files.py", "FileSink.commit delete sync_directory", "counting_to_files"),
    ],
)
def test_a_fault_that_hits_the_mistake_is_among_the_first(
    tmp_path: Path, path: str, part: str, scenario: str
) -> None:
    """In an order that knew nothing of the mistake the first took 54 runs, and the second was not
    found in a hundred seconds."""
    recorded = executed((scenario,), tmp_path / "executed", 32, 2)
    bench = Bench(tmp_path, recorded, "standard", 600.0, 1)
    (judged,) = bench.judge([mutant_of(path, part)], lambda _: None)
    found = judged.finding
    assert (found.status, found.shown_by) == ("killed", scenario)
    assert found.runs <= 20
