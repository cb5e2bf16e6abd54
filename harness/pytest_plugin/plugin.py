"""The pytest plugin: scenarios as tests, each fault run a test of its own.

::

    @pytest.mark.bettong(scenario="word_count", faults="each-step", expect="effectively-once")
    def test_word_count(bettong_result):
        assert bettong_result.coverage.injected > 20

``faults`` is ``none``, a schedule's file, a schedule as a mapping, a search (``each-step``,
``random:N``, ``ldfi``), or a list of these. A search is one test that reports each of its runs as
a test with the id of its faults. The runs are remembered: next time ``-k`` and ``--last-failed``
find them by these ids, and run these schedules alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bettong.harness.pytest_plugin.cases import CASE, MARK, RUNS, Case, case_of, cases_of
from bettong.harness.pytest_plugin.fixtures import (
    bettong_link,
    bettong_server,
    bettong_spark,
    bettong_toxiproxy,
)
from bettong.harness.pytest_plugin.searches import Reporting, Selection, SubTests
from bettong.harness.search.bounds import BOUNDS

if TYPE_CHECKING:
    from bettong.harness.backends.local import LocalBackend
    from bettong.harness.events import Handler
    from bettong.lineage.results import Result

__all__ = [  # fixtures that pytest finds here
    "bettong_link",
    "bettong_server",
    "bettong_spark",
    "bettong_toxiproxy",
]

RunCase = Callable[[Case, Path, "Handler"], "Result"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bettong")
    group.addoption(
        "--bettong-out", metavar="DIR", help="Keep results and reports of scenarios here."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "bettong(scenario, faults='none', expect='effectively-once', **options): run a scenario "
        "under faults and judge it; options are those of bettong.harness.api.run_scenario; "
        "bettong(job, faults='ldfi', expect='effectively-once', budget): check a streaming job",
    )
    # Registered late, so that it sees what -k and --last-failed have left.
    config.pluginmanager.register(Selection(config), "bettong-selection")
    config.pluginmanager.register(Reporting(config), "bettong-reporting")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARK)
    if marker is None:
        return
    cases = cases_of(marker, metafunc.definition)
    metafunc.fixturenames.append(CASE)
    metafunc.parametrize(CASE, list(cases.values()), ids=list(cases))


@pytest.fixture(scope="session")
def bettong_backend() -> Iterator[LocalBackend]:
    """The nodes that scenarios run on: started once, warm for all tests of a process."""
    from bettong.harness.backends.local import LocalBackend

    with LocalBackend() as backend:
        yield backend


@pytest.fixture(scope="session")
def bettong_run(request: pytest.FixtureRequest) -> RunCase:
    """How a case is run; a project may override it, for instance to use another backend."""

    def run(case: Case, out: Path, on_event: Handler) -> Result:
        from bettong.harness.api import run_scenario
        from bettong.lineage.search.loop import Budget

        options = {k: v for k, v in case.options.items() if k not in ("bounds", *BOUNDS)}
        if "budget" in options:
            options["budget"] = Budget.parse(str(options["budget"]))
        if case.is_job:
            from bettong.harness.queries.job.check import check_job

            asked = {**options, "out": out, "clean_only": case.faults == "none"}
            return check_job(case.scenario, expect=case.expect, on_event=on_event, **asked)
        return run_scenario(
            case.scenario,
            _faults(case),
            backend=request.getfixturevalue("bettong_backend"),
            out=out,
            expected=case.expect,
            on_event=on_event,
            **options,
        )

    return run


def _faults(case: Case) -> Any:
    """The faults as :func:`bettong.harness.api.run_scenario` takes them."""
    from bettong.harness.faults.schedule import Schedule
    from bettong.harness.search.bounds import bounds_of

    if case.faults == "ldfi":
        given = {k: v for k, v in case.options.items() if k in BOUNDS}
        return bounds_of(case.options.get("bounds"), given)
    return case.faults if isinstance(case.faults, str) else Schedule.from_dict(case.faults)


@pytest.fixture
def bettong_result(
    request: pytest.FixtureRequest, bettong_run: RunCase, tmp_path_factory: pytest.TempPathFactory
) -> Result:
    """The result of the marked scenario under the faults of this test."""
    case = case_of(request.node)
    if case is None:
        raise pytest.UsageError(f"{request.node.nodeid}: bettong_result needs @pytest.mark.bettong")
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]
    kept = request.config.getoption("bettong_out")
    out = Path(kept) / name if kept else tmp_path_factory.mktemp(f"bettong-{name}")
    runs = SubTests(request.node)
    from bettong.harness.events import ignore
    from bettong.lineage.errors import UsageError
    from bettong.reports import write_reports

    told = ""
    try:
        result = bettong_run(case, out, runs.on_event if case.is_search else ignore)
    except UsageError as e:
        told = f"{case.scenario}: {e}"
    if told:
        pytest.fail(told, pytrace=False)
    if case.is_search:
        runs.remember()
    result.write(out)
    write_reports(result, out)
    request.node.add_report_section("setup", "bettong report", str(out / "report.html"))
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A mark by which nothing is run would let the test pass."""
    if item.get_closest_marker(MARK) is not None and case_of(item) is None:
        pytest.fail(
            f"{item.nodeid}: @pytest.mark.bettong runs nothing here: it belongs to a plain "
            "function, or a method of a plain class (not of unittest's TestCase), in its file",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    runs = item.stash.get(RUNS, [])
    if runs:
        # They travel with the report of the search: workers of xdist may report no other test.
        vars(report)["bettong_runs"] = list(runs)
        runs.clear()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    if case_of(pyfuncitem) is None:
        return (yield)
    from bettong.harness.testing import failure_text

    # The test itself may take another name for it or none at all.
    result = pyfuncitem._request.getfixturevalue("bettong_result")
    outcome = yield
    if result.verdict != "valid":
        pytest.fail(failure_text(result), pytrace=False)
    return outcome
