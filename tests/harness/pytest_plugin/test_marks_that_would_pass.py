"""Marks under which nothing, or something else than was meant, would run: none lets a test pass."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result

@pytest.fixture(scope="session")
def bettong_run():
    def run(case, out, on_event):
        print("RAN", case.faults)
        if case.scenario == "wrod_count":
            raise UsageError("no such scenario: did you mean word_count?")
        return Result(case.scenario, "valid", environment={})
    return run
"""


def run(pytester: pytest.Pytester, text: str, *args: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(f"import pytest\nbettong = pytest.mark.bettong\n{text}")
    known = entry_points(group="pytest11", name="bettong")
    plugin = () if known else ("-p", "bettong.harness.pytest_plugin.plugin")
    return pytester.runpytest_inprocess(*plugin, "-s", "-p", "no:cacheprovider", *args)


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("faults=[]", "faults=*is empty: nothing would be run"),
        ("faults=None", "faults=None: *none, ldfi, each-step, random:N*"),
        ("expect='efectively-once'", "expect='efectively-once': there are effectively-once, *"),
        ("expect=None", "expect=None: there are effectively-once, *"),
        ("crashes=1", "crashes=… is for searches by lineage: write faults='ldfi'*"),
        ("faults=['each-step'], bounds='quick'", "bounds=… is for searches by lineage*"),
        ("faults='ldfi', crashes=-1", "crashes=-1: a whole number from 0*"),
        ("faults='ldfi', crashes='1'", "crashes='1': a whole number from 0*"),
        ("faults='ldfi', batches=0", "batches=0: a whole number from 1*"),
        ("faults='ldfi', bounds='quik'", "did you mean quick?"),
        ("faults='ldfi', budget='0'", "*a number of runs, or a time such as*"),
    ],
)
def test_an_argument_that_cannot_be_meant(pytester: pytest.Pytester, mark: str, told: str) -> None:
    found = run(pytester, f"@bettong(scenario='word_count', {mark})\ndef test_it(): pass\n")
    assert found.ret != 0
    found.stdout.fnmatch_lines([f"*test_it: *{told}*"])
    found.stdout.no_fnmatch_line("*RAN *")
    found.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("scenario=None", "scenario=None: the name of a scenario is wanted"),
        ("scenario=7, faults='ldfi'", "scenario=7: the name of a scenario is wanted"),
        ("job=None", "job=None: the target of a job is wanted"),
    ],
)
def test_what_is_no_name_is_told_when_tests_are_collected(
    pytester: pytest.Pytester, mark: str, told: str
) -> None:
    found = run(pytester, f"@bettong({mark})\ndef test_it(): pass\n")
    assert found.ret != 0
    found.stdout.fnmatch_lines([f"*test_it: *{told}*"])
    found.stdout.no_fnmatch_line("*TypeError*")


def test_files_of_one_name_in_two_folders_are_both_run(pytester: pytest.Pytester) -> None:
    mark = "@bettong(scenario='word_count', faults=['a/x.yaml', 'b/x.yaml', 'b/x.yaml'])"
    found = run(pytester, f"{mark}\ndef test_it(): pass\n", "-v")
    found.assert_outcomes(passed=2)
    found.stdout.fnmatch_lines(
        ["*test_it[[]x[]] RAN a/x.yaml", "*test_it[[]b/x.yaml[]] RAN b/x.yaml"]
    )


def test_two_marks_at_one_test_are_refused(pytester: pytest.Pytester) -> None:
    marks = "@bettong(scenario='word_count')\n@bettong(scenario='counting')"
    found = run(pytester, f"{marks}\ndef test_it(): pass\n")
    assert found.ret != 0
    found.stdout.fnmatch_lines(["*test_it: several @pytest.mark.bettong*one test for each*"])


def test_a_mark_where_pytest_runs_nothing_by_it_is_an_error(pytester: pytest.Pytester) -> None:
    text = """
        import unittest
        class TestOld(unittest.TestCase):
            @bettong(scenario='word_count')
            def test_it(self): pass
    """
    found = run(pytester, "\n".join(line[8:] for line in text.splitlines()))
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(["*test_it: @pytest.mark.bettong*plain function*"])


def test_a_mark_that_comes_too_late_is_an_error(pytester: pytest.Pytester) -> None:
    late = """
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.bettong(scenario='word_count'))
"""
    pytester.makeconftest(CONFTEST + late)
    pytester.makepyfile("def test_it(): pass\n")
    found = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    found.assert_outcomes(errors=1)


def test_what_cannot_be_run_is_told_without_a_traceback(pytester: pytest.Pytester) -> None:
    found = run(pytester, "@bettong(scenario='wrod_count')\ndef test_it(): pass\n")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*did you mean word_count?*"])
    found.stdout.no_fnmatch_line("*raise UsageError*")
    found.stdout.no_fnmatch_line("*During handling*")
