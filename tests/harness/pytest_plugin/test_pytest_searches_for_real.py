"""Marked tests that really run: real processes and kills, on the in-process runner."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from bettong.harness.backends.local import LocalBackend

@pytest.fixture(scope="session")
def bettong_backend():
    with LocalBackend(runner="in-process") as backend:
        yield backend
"""
TESTS = """
import pytest

@pytest.mark.bettong(
    scenario="sink_commits_again", faults="ldfi", crashes=1, losses=0, batches=2
)
def test_mutant():
    pass

@pytest.mark.bettong(
    scenario="sink_commits_again", faults="random:1", seed=3, expect="at-least-once"
)
def test_mutant_as_it_is(bettong_result):
    assert bettong_result.coverage.injected >= 1
"""


def test_a_search_reports_each_run_and_failures_are_run_again_alone(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    first = pytester.runpytest_subprocess(
        "-v", "-k", "test_mutant and not as_it_is", "--junitxml=j.xml"
    )
    first.stdout.fnmatch_lines(
        [
            "*test_mutant[[]crash(*)[]] FAILED*",
            "*test_mutant[[]ldfi[]] FAILED*",
            "*minimal faults: crash(*)*",
            "*Duplicate lines/*",
            "*replay: bettong replay*",
        ]
    )
    first.stdout.no_fnmatch_line("*Traceback*")
    xml = ElementTree.parse(pytester.path / "j.xml")
    failed = {c.get("name") for c in xml.iter("testcase") if c.find("failure") is not None}
    assert "test_mutant[ldfi]" in failed and len(failed) >= 2

    again = pytester.runpytest_subprocess("-v", "--last-failed")
    outcomes = again.parseoutcomes()
    assert outcomes["failed"] == len(failed) - 1, "the failing schedules, not the search"
    again.stdout.no_fnmatch_line("*test_mutant[[]ldfi[]]*")

    one = sorted(name for name in failed if name != "test_mutant[ldfi]")[0]
    words = " and ".join(re.findall("[a-z]+", str(one).partition("[")[2]))
    chosen = pytester.runpytest_subprocess("-v", "-k", words)
    chosen.assert_outcomes(failed=1, deselected=chosen.parseoutcomes()["deselected"])


def test_workers_of_xdist_have_nodes_of_their_own(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    found = pytester.runpytest_subprocess("-v", "-n", "2")
    found.stdout.fnmatch_lines_random(
        ["*FAILED*test_mutant[[]ldfi[]]*", "*test_mutant[[]crash(*)[]]*"]
    )
    outcomes = found.parseoutcomes()
    assert outcomes["failed"] >= 2
