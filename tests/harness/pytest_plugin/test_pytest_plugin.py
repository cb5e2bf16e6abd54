"""The plugin in a pytest of its own, with a stand-in for the runs themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from bettong.harness.events import RunJudged
from bettong.lineage.results import Anomaly, Counterexample, Result, Run

SCHEDULES = {
    f"crash(driver, before batch=1/{s})": {
        "faults": [{"crash": {"node": "driver", "before": f"batch=1/{s}"}}]
    }
    for s in ("offsets", "sink.commit", "commits")
}
BROKEN = "crash(driver, before batch=1/commits)"

@pytest.fixture(scope="session")
def bettong_run():
    def run(case, out, on_event):
        print("RAN", case.faults)
        if case.faults == "none":
            names = []
        elif case.is_search:
            names = list(SCHEDULES)
        else:
            names = [n for n, s in SCHEDULES.items() if s == case.faults]
        runs = []
        for name in names:
            bad = name == BROKEN and case.scenario == "mutant"
            twice = Anomaly("Duplicate", ("lines/3.0",), "they", {"times": 1}, {"times": 2})
            found = (twice,) if bad else ()
            runs.append(Run((name,), "violation" if bad else "good", anomalies=found, seconds=0.1))
            on_event(RunJudged(name, runs[-1], len(runs), schedule=SCHEDULES[name]))
        bad = [r for r in runs if r.outcome == "violation"]
        examples = tuple(
            Counterexample(r.faults, r.anomalies, replay="bettong replay ce-1.json", words="Dies.")
            for r in bad
        )
        return Result(
            scenario=case.scenario, verdict="invalid" if bad else "valid",
            guarantee="at-least-once" if bad else "effectively-once", expected=case.expect,
            counterexamples=examples, runs=tuple(runs), environment={},
        )
    return run
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.bettong(scenario="word_count", faults=["none", "each-step"])
        def test_right(bettong_result):
            assert bettong_result.verdict == "valid"

        @pytest.mark.bettong(scenario="mutant", faults="each-step")
        def test_mutant():
            pass
        """
    )
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    plugin = () if _installed() else ("-p", "bettong.harness.pytest_plugin.plugin")
    return project.runpytest_subprocess(*plugin, "-v", *args)


def _installed() -> bool:
    from importlib.metadata import entry_points

    return bool(entry_points(group="pytest11", name="bettong"))


def test_each_fault_run_is_reported_with_a_stable_id(project: pytest.Pytester) -> None:
    found = run(project, "--junitxml=junit.xml")
    # no fault, 2 searches, 3 runs of each
    found.assert_outcomes(passed=1 + 1 + 3 + 2, failed=1 + 1)
    found.stdout.fnmatch_lines(
        [
            "*test_mutant[[]crash(driver, before batch=1/commits)[]] FAILED*",
            "*minimal faults: crash(driver, before batch=1/commits)*",
            "*Duplicate lines/3.0 (key they)*",
            "*replay: bettong replay ce-1.json*",
        ]
    )
    found.stdout.no_fnmatch_line("*Traceback*")
    xml = (project.path / "junit.xml").read_text()
    assert 'name="test_mutant[crash(driver, before batch=1/commits)]"' in xml


def test_last_failed_runs_the_failing_schedule_alone(project: pytest.Pytester) -> None:
    run(project)
    found = run(project, "--lf", "-s")
    found.assert_outcomes(failed=1, deselected=1)
    found.stdout.fnmatch_lines(["*test_mutant[[]crash(driver, before batch=1/commits)[]]*"])
    found.stdout.no_fnmatch_line("*RAN each-step*")


def test_runs_are_chosen_by_k_and_by_node_id(project: pytest.Pytester) -> None:
    run(project)
    found = run(project, "-k", "right and offsets")
    found.assert_outcomes(passed=1, deselected=8)
    node = "test_mutant[crash(driver, before batch=1/sink.commit)]"
    name = next(project.path.glob("test_*.py")).name
    run(project, f"{name}::{node}").assert_outcomes(passed=1)


def test_remembered_runs_are_not_run_twice(project: pytest.Pytester) -> None:
    run(project)
    found = run(project, "-s")
    found.assert_outcomes(passed=7, failed=2, deselected=6)


def test_with_xdist(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    for _ in range(2):
        found = run(project, "-n", "2")
        outcomes = found.parseoutcomes()
        assert (outcomes["passed"], outcomes["failed"]) == (7, 2)


def test_a_mark_that_cannot_be_meant(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.bettong(scenrio="word_count")
        def test_it(): pass
        """
    )
    found = run(pytester)
    found.stdout.fnmatch_lines(["*takes scenario=*not scenrio*"])


def test_a_job_is_marked_by_its_target_and_searched_unless_said_otherwise(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from bettong.lineage.results import Result

        @pytest.fixture(scope="session")
        def bettong_run():
            def run(case, out, on_event):
                assert case.is_job and not case.is_search and case.expect == "at-least-once"
                return Result(f"{case.scenario} {case.faults}", "valid")
            return run

        @pytest.mark.bettong(job="mine.py:Mine", expect="at-least-once")
        def test_job(bettong_result):
            assert bettong_result.scenario == "mine.py:Mine ldfi"
        """
    )
    run(pytester).assert_outcomes(passed=1)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.bettong(job="mine.py:Mine", faults="each-step")
        def test_job(): pass
        """
    )
    run(pytester).stdout.fnmatch_lines(["*takes faults='ldfi' or 'none'*"])


def test_importing_the_plugin_imports_neither_spark_nor_pandas() -> None:
    code = (
        "import sys, bettong.harness.pytest_plugin.plugin; "
        "heavy = ('pyspark', 'pandas', 'pyarrow', 'numpy', 'networkx'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_assert_valid_prints_what_a_person_needs() -> None:
    from bettong.harness.testing import assert_valid
    from bettong.lineage.results import Anomaly, Result

    assert_valid(Result(scenario="s", verdict="valid"))
    lost = Result(scenario="s", verdict="invalid", anomalies=(Anomaly("Loss", ("a/1",), "k", 3),))
    with pytest.raises(AssertionError, match="Loss a/1 \\(key k\\)"):
        assert_valid(lost)
    with pytest.raises(AssertionError, match="Level not known"):
        assert_valid(Result(scenario="s", verdict="unknown"))


def test_reports_are_kept_where_told(project: pytest.Pytester, tmp_path: Path) -> None:
    run(project, "-k", "no", f"--bettong-out={tmp_path}")
    assert len(list(tmp_path.glob("*/report.html"))) == 1


def test_links_and_servers_are_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket
        import pytest

        def test_link(bettong_link):
            with socket.create_server(("127.0.0.1", 0)) as server:
                link = bettong_link(f"127.0.0.1:{server.getsockname()[1]}")
                with socket.create_connection(link.address) as client:
                    client.sendall(b"hello")
                    accepted, _ = server.accept()
                    assert accepted.recv(5) == b"hello"
                    accepted.close()

        def test_server(bettong_server, monkeypatch):
            from bettong.harness import servers
            def missing():
                raise servers.ServerMissingError("apt-get install it")
            monkeypatch.setattr(servers, "RedisServer", missing)
            bettong_server("redis")
        """
    )
    found = run(pytester, "-rs")
    found.assert_outcomes(passed=1, skipped=1)
    found.stdout.fnmatch_lines(["*REDIS IS NOT INSTALLED: apt-get install it*"])


@pytest.mark.spark
@pytest.mark.slow
def test_a_broken_scenario_fails_for_the_right_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.bettong(
            scenario="sink_commits_again",
            faults={"faults": [{"crash": {"node": "driver", "after": "batch=1/sink.commit"}}]},
        )
        def test_sink():
            pass
        """
    )
    found = run(pytester, "--timeout=280")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "*test_sink[[]crash(driver, after batch=1/sink.commit)[]] FAILED*",
            "*minimal faults: crash(driver, after batch=1/sink.commit)*",
            "*Duplicate lines/*",
            "*replay: bettong replay*",
        ]
    )
    found.stdout.no_fnmatch_line("*java*")
