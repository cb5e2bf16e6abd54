"""The loop: endings, budget, log, equivalence, parallel runs."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import networkx as nx
import pytest

from bettong.lineage.errors import UsageError
from bettong.lineage.faults import CLEAN, Bounds, Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.results import Anomaly, Outcome
from bettong.lineage.search.executor import BudgetSpentError, Execution
from bettong.lineage.search.journal import Journal
from bettong.lineage.search.loop import Budget, search
from bettong.scenarios.protocols.delivery import Ack, Retry

WAYS = 3


@dataclass
class Paths:
    """A system with several ways to its goal, each of which one fault cuts."""

    outcomes: dict[FaultSet, Outcome] = field(default_factory=dict)
    parallel: int = 1
    fingerprints: list[str] = field(default_factory=list)
    ran: list[FaultSet] = field(default_factory=list)
    together: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: int = 0

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        with self._lock:
            self._under_way += 1
            self.together = max(self.together, self._under_way)
            self.ran.append(schedule)
        lineage = Lineage()
        # what a run shows is one way only: the first that is not cut
        open_ways = [n for n in range(WAYS) if f"cut({n})" not in schedule]
        for n in open_ways[:1]:
            leaf = lineage.leaf(f"way {n}", [Fault(f"cut({n})", "loss", "", f"{n}", n)])
            lineage.firing("goal", [leaf], f"way {n}")
            lineage.fact("goal", goal=True)
        outcome = self.outcomes.get(schedule, "good" if open_ways else "violation")
        fingerprint = self.fingerprints.pop(0) if self.fingerprints else ""
        with self._lock:
            self._under_way -= 1
        return Execution(
            schedule,
            outcome,
            lineage,
            not_fired=tuple(schedule) if outcome == "not-injected" else (),
            fingerprint=fingerprint,
        )


ALL = frozenset(f"cut({n})" for n in range(WAYS))


def test_the_search_learns_each_way_until_none_is_left() -> None:
    found = search(Paths(), Bounds())
    assert found.verdict == "invalid"
    assert found.minimal == [ALL]
    assert found.coverage.to_first == WAYS + 1


class Doubling(Paths):
    """Each way that is cut doubles something; without any way all is lost."""

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        execution = super().run(schedule)
        found = {Anomaly("Duplicate", ("one",))} if schedule else set()
        if execution.outcome == "violation":
            found = {Anomaly("Loss", ("one",))}
        outcome: Outcome = "violation" if found else "good"
        return replace(execution, outcome=outcome, anomalies=tuple(found))


def only_doubles(execution: Execution) -> bool:
    return all(a.kind == "Duplicate" for a in execution.anomalies)


@pytest.mark.parametrize("parallel", [1, 2])
def test_what_is_allowed_hides_nothing_that_breaks_beside_it(parallel: int) -> None:
    found = search(Doubling(parallel=parallel), Bounds(), find_all=True, allowed=only_doubles)
    assert found.minimal == [frozenset({"cut(0)"}), ALL]
    assert found.complete


def test_what_is_not_allowed_stands_for_all_that_contain_it() -> None:
    found = search(Doubling(), Bounds(), find_all=True)
    assert found.minimal == [frozenset({"cut(0)"})]
    assert found.complete


def test_what_a_good_run_taught_is_not_kept_with_it() -> None:
    broken = frozenset({"cut(0)", "cut(1)"})
    found = search(Paths({broken: "violation"}), Bounds({"loss": 2}))
    first, second = frozenset({"cut(0)"}), frozenset({"cut(1)"})
    assert [e.schedule for e in found.executions] == [CLEAN, first, broken, second]
    assert [len(e.lineage) > 0 for e in found.executions] == [True, False, True, False]


def test_bounds_end_it_with_a_guarantee() -> None:
    found = search(Paths(), Bounds({"loss": 2}))
    assert (found.verdict, found.complete) == ("valid", True)
    assert found.coverage.executions == 3


def test_a_budget_ends_it_without_an_answer() -> None:
    found = search(Paths(), Bounds(), budget=Budget(runs=2))
    assert (found.verdict, found.complete) == ("unknown", False)
    assert "budget" in found.reason


def test_the_time_of_a_budget_counts_from_before_the_search() -> None:
    over = replace(Budget(seconds=60), ends=monotonic())
    assert over.begun() == over
    system = Paths()
    found = search(system, Bounds(), budget=over)
    assert found.verdict == "unknown"
    assert system.ran == [CLEAN]


def test_the_time_of_a_budget_begins_once() -> None:
    assert Budget(runs=3).begun().ends == inf
    begun = Budget(seconds=60).begun()
    assert 0 < begun.ends - monotonic() <= 60
    assert begun.begun() == begun


@pytest.mark.parametrize("outcome", ["vacuous", "unknown"])
def test_a_clean_run_that_tests_nothing_is_no_pass(outcome: Outcome) -> None:
    assert search(Paths({CLEAN: outcome}), Bounds()).verdict == "unknown"


def test_a_clean_run_that_is_broken_needs_no_fault() -> None:
    found = search(Paths({CLEAN: "violation"}), Bounds())
    assert (found.verdict, found.minimal) == ("invalid", [CLEAN])


def test_clean_runs_that_differ_are_no_pass() -> None:
    assert search(Paths(fingerprints=["x", "y"]), Bounds({"loss": 1})).verdict == "unknown"
    assert search(Paths(fingerprints=["x", "x"]), Bounds({"loss": 1})).verdict == "valid"


class ComesAndGoes(Paths):
    """Breaks its goal in its second run, without a fault."""

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        found = super().run(schedule)
        if len(self.ran) != 2:
            return found
        return replace(found, outcome="violation", anomalies=(Anomaly("Loss", messages=("m",)),))


@pytest.mark.parametrize("fingerprints", [["x", "x"], ["x", "y"]])
def test_a_second_clean_run_that_is_broken_needs_no_fault(fingerprints: list[str]) -> None:
    found = search(ComesAndGoes(fingerprints=fingerprints), Bounds({"loss": 1}))
    assert (found.verdict, found.minimal) == ("invalid", [CLEAN])
    assert "the second clean run breaks the goal" in found.reason
    assert (found.baseline.outcome, found.coverage.to_first) == ("good", 2)
    result = found.result(scenario="two", kind="protocol")
    (example,) = result.counterexamples
    assert (example.faults, example.anomalies) == ((), found.executions[1].anomalies)
    assert result.coverage.violated == 1


def test_a_fault_that_did_not_fire_is_no_pass() -> None:
    missed = frozenset({"cut(0)"})
    found = search(Paths({missed: "not-injected"}), Bounds({"loss": 2}))
    assert found.verdict == "unknown"
    assert found.coverage.not_injected == 1


@dataclass
class Missed(Paths):
    """Injects a fault only at one of the times that its schedule is run."""

    at: int = 2

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        execution = super().run(schedule)
        if schedule == {"cut(0)"} and self.ran.count(schedule) != self.at:
            return replace(execution, outcome="not-injected", not_fired=("cut(0)",))
        return execution


@pytest.mark.parametrize("parallel", [1, 4])
def test_what_was_not_injected_is_run_once_more_when_all_else_has_been(parallel: int) -> None:
    system = Missed(parallel=parallel)
    found = search(system, Bounds({"loss": 2}), once_more=1)
    assert (found.verdict, found.complete) == ("valid", True)
    assert found.coverage.not_injected == 0
    assert [e.outcome for e in found.executions] == ["good"] * 3
    # what it shows then is learned: that there is a second way, which both faults together cut
    assert system.ran == [CLEAN, *[frozenset({"cut(0)"})] * 2, frozenset({"cut(0)", "cut(1)"})]


def test_what_is_not_injected_once_more_is_no_pass() -> None:
    system = Missed(at=3)
    found = search(system, Bounds({"loss": 2}), once_more=1)
    assert (found.verdict, found.coverage.not_injected) == ("unknown", 1)
    assert len(system.ran) == 3


def test_of_equivalent_schedules_one_is_run() -> None:
    system = Paths()
    found = search(system, Bounds({"loss": 2}), canonical=lambda s: CLEAN)
    assert system.ran == [CLEAN]
    assert found.coverage.pruned == 1


def test_what_a_schedule_stands_for_is_not_put_up_after_it() -> None:
    first, other = frozenset({"cut(0)"}), frozenset({"cut(0)", "cut(1)"})
    system = Paths()
    found = search(system, Bounds({"loss": 2}), alike=lambda s: [other] if s == first else [])
    assert system.ran == [CLEAN, first]
    assert (found.coverage.hypotheses, found.coverage.pruned) == (1, 0)


@dataclass
class Repaired:
    """A system that repairs one fault in five steps, each of which can fail too."""

    ran: list[FaultSet] = field(default_factory=list)
    parallel = 1

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        self.ran.append(schedule)
        lineage = Lineage()
        cut = Fault("cut", "loss")
        if "cut" not in schedule:
            lineage.firing("goal", [lineage.leaf("way", [cut])], "way")
        else:
            steps = [lineage.leaf(f"step {n}", [Fault(f"fail({n})", "loss")]) for n in range(5)]
            owed = lineage.leaf("because of cut", [cut], lost=True)
            lineage.firing("goal", [owed, *steps], "repair")
        lineage.fact("goal", goal=True)
        return Execution(schedule, "violation" if "fail(1)" in schedule else "good", lineage)


def test_what_is_suggested_is_tried_first_if_it_is_a_hypothesis() -> None:
    likely = [frozenset({"fail(3)"}), frozenset({"cut", "fail(1)"}), frozenset({"cut", "odd"})]
    system = Repaired()
    found = search(system, Bounds({"loss": 2}), smallest_first=True, suggest=lambda: likely)
    assert system.ran == [CLEAN, frozenset({"cut"}), likely[1], frozenset({"fail(1)"})]
    assert found.minimal == [frozenset({"fail(1)"})]
    left_alone = Repaired()
    search(left_alone, Bounds({"loss": 2}), smallest_first=True)
    assert left_alone.ran[2] != likely[1]


class Needed(Paths):
    """Each way is needed, and only all of the faults together break anything for good."""

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        self.ran.append(schedule)
        lineage = Lineage()
        ways = [lineage.leaf(f"way {n}", [Fault(f"cut({n})", "loss")]) for n in range(WAYS)]
        shown = [lineage.leaf(f"owed to {id}", [Fault(id, "loss")], lost=True) for id in schedule]
        left = [lineage.leaf(f"again {n}", [Fault(f"cut({n})", "loss")]) for n in range(WAYS)]
        lineage.firing("goal", [*shown, *left] if schedule else ways, "needed")
        lineage.fact("goal", goal=True)
        return Execution(schedule, self.outcomes.get(schedule, "good"), lineage)


@pytest.mark.parametrize("parallel", [1, 2])
def test_what_is_likely_is_put_up_ahead_of_smaller_sets_and_nothing_is_left_out(
    parallel: int,
) -> None:
    first, other = frozenset({"cut(0)", "cut(1)"}), frozenset({"cut(0)", "odd"})
    given = iter([other, first])
    bounds = Bounds({"loss": 2})
    system = Needed(parallel=parallel)
    ahead = search(system, bounds, smallest_first=True, ahead=lambda: given)
    assert system.ran.index(first) < 2 * parallel and other not in system.ran
    plain = Needed()
    found = search(plain, bounds, smallest_first=True)
    assert plain.ran.index(first) > WAYS
    assert set(system.ran) == set(plain.ran)
    assert (ahead.verdict, ahead.complete) == (found.verdict, found.complete) == ("valid", True)


def test_runs_go_on_together_where_the_system_allows() -> None:
    program = Simulation(Retry())
    spec = FailureSpec(program.nodes, 6, 3, 1)
    alone = search(RoundExecutor(program, spec), spec.bounds, find_all=True)

    class Two(RoundExecutor):
        parallel = 2

    both = search(Two(program, spec), spec.bounds, find_all=True)
    assert both.minimal == alone.minimal

    def rounds(executor: RoundExecutor) -> list[FaultSet]:
        found = search(executor, spec.bounds, find_all=True, at_a_time=lambda faults: 3)
        return [execution.schedule for execution in found.executions]

    assert rounds(Two(program, spec)) == rounds(RoundExecutor(program, spec))


@pytest.mark.parametrize("smallest_first", [True, False])
def test_what_the_last_ones_teach_is_tried_although_there_was_room_for_more(
    smallest_first: bool,
) -> None:
    system = Repaired()
    system.parallel = 2
    found = search(system, Bounds({"loss": 2}), smallest_first=smallest_first, find_all=True)
    assert frozenset({"cut", "fail(1)"}) in found.minimal
    assert len(system.ran) == 7


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_no_more_is_put_up_than_the_budget_has(runs: int) -> None:
    system = Repaired()
    budget = Budget(runs=runs)
    search(system, Bounds({"loss": 2}), find_all=True, budget=budget, at_a_time=lambda n: 9)
    assert len(system.ran) == runs


class Many(Paths):
    """Five ways lead to the goal; each cut is run, whatever the others have shown."""

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        with self._lock:
            self.ran.append(schedule)
        lineage = Lineage()
        leaves = [lineage.leaf(f"way {n}", [Fault(f"cut({n})", "loss")]) for n in range(5)]
        lineage.firing("goal", leaves, "way")
        lineage.fact("goal", goal=True)
        return Execution(schedule, "violation" if schedule else "good", lineage)


def test_nothing_more_is_run_when_there_is_enough() -> None:
    system = Many()
    search(
        system,
        Bounds({"loss": 1}),
        find_all=True,
        at_a_time=lambda n: 5,
        enough=lambda: len(system.ran) > 2,
    )
    assert len(system.ran) == 3


def test_the_next_is_put_up_while_others_are_still_under_way() -> None:
    third = threading.Event()

    class Waits(Many):
        def run(self, schedule: FaultSet = CLEAN) -> Execution:
            execution = super().run(schedule)
            place = self.ran.index(schedule)
            if place == 3:
                third.set()
            assert place != 2 or third.wait(60)
            return execution

    found = search(Waits(parallel=2), Bounds({"loss": 1}), find_all=True)
    assert len(found.executions) == 6


def test_what_is_under_way_when_there_is_enough_is_not_lost() -> None:
    second = threading.Event()

    class Two(Many):
        def run(self, schedule: FaultSet = CLEAN) -> Execution:
            execution = super().run(schedule)
            place = self.ran.index(schedule)
            if place == 2:
                second.set()
            assert place != 1 or second.wait(60)
            return execution

    found = search(Two(parallel=2), Bounds({"loss": 1}))
    assert len(found.executions) >= 3
    assert found.verdict == "invalid"


def test_the_log_answers_instead_of_the_system(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    first = search(Paths(), Bounds(), log=log, question="paths")
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:-1]) + b'{"schedule": ["torn')  # killed before the end
    system = Paths()
    again = search(system, Bounds(), log=log, question="paths")
    assert system.ran == []
    assert again.minimal == first.minimal
    assert again.coverage == first.coverage


def test_a_log_that_is_taken_up_has_no_lineage_in_memory_before_it_is_asked_for(
    tmp_path: Path,
) -> None:
    """Thousands of them take gigabytes."""
    log = tmp_path / "search.jsonl"
    found = search(Paths(), Bounds(), log=log, question="paths")
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:-1]))

    def graphs() -> int:
        gc.collect()
        return sum(isinstance(o, nx.DiGraph) and len(o) > 0 for o in gc.get_objects())

    before = graphs()
    journal = Journal(log, "paths")
    assert journal.resumed == len(found.executions)
    assert graphs() == before
    clean = journal.get(CLEAN)
    assert clean is not None and clean.lineage.goals
    journal.close()


def test_a_search_that_came_to_its_end_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    search(Paths(), Bounds(), log=log, question="paths")
    system = Paths()
    search(system, Bounds(), log=log, question="paths")
    assert CLEAN in system.ran
    assert log.read_bytes().count(b"question") == 1


def test_an_interrupted_search_of_what_has_been_changed_begins_anew(tmp_path: Path) -> None:
    """Else what the former system has survived would be said of the present one."""
    log, cut = tmp_path / "search.jsonl", frozenset({"cut(0)"})
    asked: dict[str, Any] = {"log": log, "question": "paths"}
    first = search(Paths(), Bounds(), budget=Budget(2), system="before", **asked)
    assert first.verdict == "unknown"
    same, changed = Paths(), Paths({cut: "violation"})
    search(same, Bounds(), budget=Budget(2), system="before", **asked)
    assert CLEAN not in same.ran
    found = search(changed, Bounds(), system="after", **asked)
    assert CLEAN in changed.ran
    assert found.verdict == "invalid"
    assert log.read_bytes().count(b"question") == 1


def test_a_search_for_all_goes_on_when_its_budget_ended_it_at_a_violation(tmp_path: Path) -> None:
    log, broken = tmp_path / "search.jsonl", {frozenset({"cut(0)"}): "violation"}
    first = search(Paths(broken), Bounds(), find_all=True, budget=Budget(2), log=log)  # type: ignore[arg-type]
    assert (first.verdict, first.complete) == ("invalid", False)
    system = Paths(broken)  # type: ignore[arg-type]
    assert search(system, Bounds(), find_all=True, log=log).complete
    assert CLEAN not in system.ran


def test_a_run_that_showed_nothing_is_run_again(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    missed = frozenset({"cut(0)"})
    search(Paths({missed: "not-injected"}), Bounds({"loss": 2}), log=log, question="paths")
    system = Paths()
    search(system, Bounds({"loss": 2}), log=log, question="paths")
    assert missed in system.ran
    assert CLEAN not in system.ran


def test_where_another_question_is_answered_the_log_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    search(Paths(), Bounds({"loss": 2}), log=log, question="paths")
    system = Paths()
    search(system, Bounds({"loss": 2}), log=log, question="other")
    assert CLEAN in system.ran
    assert json.loads(log.read_text().splitlines()[0])["question"] == "other"
    search(Paths(), Bounds({"loss": 2}), log=log, question="other", budget=Budget(runs=2))


def test_the_log_of_another_question_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    search(Paths(), Bounds({"loss": 2}), log=log, question="paths", budget=Budget(runs=2))
    kept = log.read_bytes()
    with pytest.raises(UsageError, match="another question"):
        search(Paths(), Bounds(), log=log, question="other")
    assert log.read_bytes() == kept
    log.write_text("rubbish\n")
    with pytest.raises(UsageError, match=r"search\.jsonl:1"):
        search(Paths(), Bounds(), log=log, question="paths")


KILLED = """
import os, signal, sys
from pathlib import Path
from bettong.lineage.search.events import Executed
from bettong.lineage.search.loop import search
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.scenarios.protocols.delivery import Retry
program = Simulation(Retry())
spec = FailureSpec(program.nodes, 6, 3, 1)
def on_event(event):
    if isinstance(event, Executed) and event.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
search(RoundExecutor(program, spec), spec.bounds, find_all=True, log=Path(sys.argv[1]),
       question="retry", on_event=on_event)
"""


def test_a_killed_search_goes_on_with_the_same_answer(tmp_path: Path) -> None:
    log = tmp_path / "search.jsonl"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(log)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    program = Simulation(Retry())
    spec = FailureSpec(program.nodes, 6, 3, 1)
    whole = search(RoundExecutor(program, spec), spec.bounds, find_all=True)
    fresh: list[FaultSet] = []

    class Counting(RoundExecutor):
        def run(self, schedule: FaultSet = CLEAN) -> Execution:
            fresh.append(schedule)
            return super().run(schedule)

    executor = Counting(program, spec)
    resumed = search(executor, spec.bounds, find_all=True, log=log, question="retry")
    assert resumed.minimal == whole.minimal
    assert resumed.coverage == whole.coverage
    assert len(fresh) == whole.coverage.executions - 3


def test_the_first_violation_is_made_minimal() -> None:
    program = Simulation(Ack())
    spec = FailureSpec(program.nodes, 5, 2, 3)
    executor = RoundExecutor(program, spec)
    found = search(executor, spec.bounds)
    if found.minimal:
        for fault in found.minimal[0]:
            assert executor.outcome(found.minimal[0] - {fault}) != "violation"


@dataclass
class Fork(Paths):
    """Three single faults leave the goal standing; a run with one of them shows that nothing
    beside it matters any more."""

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        with self._lock:
            self.ran.append(schedule)
        lineage = Lineage()
        loss = {name: Fault(name, "loss", "", name, n) for n, name in enumerate(sorted(ALL))}
        leaves = [lineage.leaf(name, [loss[name]]) for name in loss if not schedule]
        leaves += [lineage.leaf(f"{x} fired", [loss[x]], lost=True) for x in sorted(schedule)]
        lineage.firing("goal", leaves, " ".join(sorted(schedule)) or "clean")
        lineage.fact("goal", goal=True)
        return Execution(schedule, "good", lineage)


def test_no_two_faults_are_tried_while_what_rules_them_out_is_still_running() -> None:
    alone, together = Fork(), Fork(parallel=4)
    for system in (alone, together):
        found = search(system, Bounds({}, 2), find_all=True, smallest_first=True)
        assert (found.verdict, found.complete) == ("valid", True)
    assert {len(schedule) for schedule in together.ran} == {0, 1}
    assert sorted(together.ran, key=sorted) == sorted(alone.ran, key=sorted)


def test_executions_are_settled_in_the_order_in_which_they_were_put_up() -> None:
    system, settled = Paths(parallel=3), []

    def settle(execution: Execution) -> Execution:
        settled.append(execution.schedule)
        return execution

    found = search(system, Bounds(), settle=settle)
    assert settled == [execution.schedule for execution in found.executions]


def test_the_search_ends_when_enough_is_known() -> None:
    system = Paths()
    found = search(system, Bounds(), find_all=True, enough=lambda: len(system.ran) > 1)
    assert (found.complete, len(found.executions)) == (False, 2)


def test_a_run_that_the_time_ended_counts_for_nothing() -> None:
    class Slow(Paths):
        def run(self, schedule: FaultSet = CLEAN) -> Execution:
            if schedule:
                raise BudgetSpentError("the time is up")
            return super().run(schedule)

    found = search(Slow(), Bounds())
    assert (found.verdict, found.complete) == ("unknown", False)
    assert "the budget ended after 1 executions" in found.reason


@dataclass
class Lines:
    """A goal with a way for each line of the affine space of four dimensions over three numbers,
    which faults at its points cut: all ways are cut by 61 faults, and by no fewer, which no solver
    shows in a minute."""

    parallel: int = 1

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        lineage = Lineage()
        points = list(product(range(3), repeat=4))
        for line in combinations(points, 3):
            if all(sum(numbers) % 3 == 0 for numbers in zip(*line, strict=True)):
                faults = [Fault(f"cut({point})", "loss", "", "", 0) for point in line]
                leaf = lineage.leaf(f"{line}", faults)
                lineage.firing("goal", [leaf], f"{line}")
        lineage.fact("goal", goal=True)
        return Execution(schedule, "good", lineage)


@pytest.mark.timeout(120)
def test_the_time_of_a_budget_ends_the_solver_too() -> None:
    found = search(Lines(), Bounds(), budget=Budget(seconds=1))
    assert (found.verdict, found.complete) == ("unknown", False)
    assert "the budget ended after 1 executions" in found.reason
