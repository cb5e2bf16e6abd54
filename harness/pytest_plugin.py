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
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bettong.harness.pytest_fixtures import (
    bettong_link,
    bettong_server,
    bettong_spark,
    bettong_toxiproxy,
)

if TYPE_CHECKING:
    from bettong.harness.backend import LocalBackend
    from bettong.lineage.results import Guarantee, Result, Run

__all__ = [  # fixtures that pytest finds here
    "bettong_link",
    "bettong_server",
    "bettong_spark",
    "bettong_toxiproxy",
]

MARK = "bettong"
CASE = "bettong_case"
_REACH = ("crashes", "losses", "batches")
_SEARCHES = ("each-step", "random:", "ldfi")
_KNOWN_AT_MOST = 2000
_RUNS = pytest.StashKey[list[dict[str, Any]]]()


@dataclass(frozen=True)
class Case:
    """What one test runs.

    Attributes:
        faults: ``none``, a file, a search, or a schedule as a mapping.
        remembered: the schedule was one of a search, which runs it too.
    """

    scenario: str
    faults: str | Mapping[str, Any]
    expect: Guarantee
    options: Mapping[str, Any]
    remembered: bool = False

    @property
    def is_search(self) -> bool:
        """Whether the schedules are only known when it runs."""
        return isinstance(self.faults, str) and self.faults.startswith(_SEARCHES)


OnRun = Callable[["Run", Mapping[str, Any]], None]
"""Told of each run as it ends, with its schedule."""
RunCase = Callable[[Case, Path, OnRun], "Result"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bettong")
    group.addoption(
        "--bettong-out", metavar="DIR", help="Keep results and reports of scenarios here."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "bettong(scenario, faults='none', expect='effectively-once', **options): run a scenario "
        "under faults and judge it; options are those of bettong.harness.api.run_scenario",
    )
    # Registered late, so that it sees what -k and --last-failed have left.
    config.pluginmanager.register(_Selection(config), "bettong-selection")
    config.pluginmanager.register(_Reporting(config), "bettong-reporting")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARK)
    if marker is None:
        return
    cases = _cases(marker, metafunc.definition)
    metafunc.fixturenames.append(CASE)
    metafunc.parametrize(CASE, list(cases.values()), ids=list(cases))


def _cases(marker: pytest.Mark, test: pytest.Item) -> dict[str, Case]:
    given: dict[str, Any] = dict(marker.kwargs)
    unknown = set(given) - {"scenario", "faults", "expect", "seed", "input_file", "budget", *_REACH}
    if marker.args or unknown or "scenario" not in given:
        raise pytest.UsageError(
            f"{test.nodeid}: @pytest.mark.bettong takes scenario=…, faults=…, expect=…, seed=…, "
            "input_file=…, budget=…, crashes=…, losses=…, batches=… by name"
            f"{': not ' + ', '.join(unknown) if unknown else ''}"
        )
    scenario, faults = given.pop("scenario"), given.pop("faults", "none")
    expect = given.pop("expect", "effectively-once")
    cases: dict[str, Case] = {}
    for one in faults if isinstance(faults, list | tuple) else [faults]:
        case = Case(scenario, one, expect, given)
        if case.is_search:
            known = _memory(test.config).get(_memory_key(test), {})
            for name, schedule in known.items():
                cases[name] = Case(scenario, schedule, expect, given, remembered=True)
        cases[_case_id(one)] = case
    return cases


def _case_id(faults: str | Mapping[str, Any]) -> str:
    if not isinstance(faults, str):
        from bettong.harness.schedule import Schedule

        return " + ".join(Schedule.from_dict(faults).ids)
    if faults == "none":
        return "no fault"
    return faults if faults.startswith(_SEARCHES) else Path(faults).stem


def _memory(config: pytest.Config) -> Any:
    return getattr(config, "cache", None) or _NoCache()


class _NoCache:
    def get(self, key: str, default: Any) -> Any:
        return default

    def set(self, key: str, value: Any) -> None:
        pass


def _memory_key(test: pytest.Item) -> str:
    name = test.nodeid.partition("[")[0]
    return f"bettong/{hashlib.sha256(name.encode()).hexdigest()[:24]}"


class _Selection:
    """A search and its remembered runs are not both run: without ``--last-failed`` the search
    is, with it the runs that failed. Those that are chosen alone are run alone."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        searches, runs = set[str](), set[str]()
        for item in items:
            case = _case_of(item)
            if case is not None and (case.is_search or case.remembered):
                (runs if case.remembered else searches).add(_memory_key(item))
        again = self.config.getoption("lf", False)
        left_out = [i for i in items if self._is_left_out(i, searches, runs, bool(again))]
        if left_out:
            items[:] = [item for item in items if item not in left_out]
            self.config.hook.pytest_deselected(items=left_out)

    def _is_left_out(
        self, item: pytest.Item, searches: set[str], runs: set[str], again: bool
    ) -> bool:
        case = _case_of(item)
        if case is None:
            return False
        key = _memory_key(item)
        if again:
            return case.is_search and key in runs
        return case.remembered and key in searches


def _case_of(item: pytest.Item) -> Case | None:
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get(CASE) if callspec is not None else None
    return case if isinstance(case, Case) else None


@pytest.fixture(scope="session")
def bettong_backend() -> Iterator[LocalBackend]:
    """The nodes that scenarios run on: started once, warm for all tests of a process."""
    from bettong.harness.backend import LocalBackend

    with LocalBackend() as backend:
        yield backend


@pytest.fixture(scope="session")
def bettong_run(request: pytest.FixtureRequest) -> RunCase:
    """How a case is run; a project may override it, for instance to use another backend."""

    def run(case: Case, out: Path, on_run: OnRun) -> Result:
        from bettong.harness.api import run_scenario
        from bettong.harness.jobs import parse_budget

        options = {k: v for k, v in case.options.items() if k not in _REACH}
        if "budget" in options:
            options["budget"] = parse_budget(str(options["budget"]))
        return run_scenario(
            case.scenario,
            _faults(case),
            backend=request.getfixturevalue("bettong_backend"),
            out=out,
            expected=case.expect,
            progress=lambda done, total, seen: on_run(_run_of(seen), seen.schedule.to_dict()),
            **options,
        )

    return run


def _faults(case: Case) -> Any:
    """The faults as :func:`bettong.harness.api.run_scenario` takes them."""
    from bettong.harness.schedule import Schedule
    from bettong.harness.search.ldfi import Reach

    if case.faults == "ldfi":
        return Reach(**{k: v for k, v in case.options.items() if k in _REACH})
    return case.faults if isinstance(case.faults, str) else Schedule.from_dict(case.faults)


def _run_of(seen: Any) -> Run:
    from bettong.lineage.results import Run

    return Run(
        faults=seen.schedule.ids,
        outcome=seen.outcome,
        evidence=dict(seen.evidence),
        not_fired=seen.not_fired,
        anomalies=tuple(seen.anomalies),
        seconds=seen.seconds,
        note=seen.note,
    )


@pytest.fixture
def bettong_result(
    request: pytest.FixtureRequest, bettong_run: RunCase, tmp_path_factory: pytest.TempPathFactory
) -> Result:
    """The result of the marked scenario under the faults of this test."""
    case = _case_of(request.node)
    if case is None:
        raise pytest.UsageError(f"{request.node.nodeid}: bettong_result needs @pytest.mark.bettong")
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]
    kept = request.config.getoption("bettong_out")
    out = Path(kept) / name if kept else tmp_path_factory.mktemp(f"bettong-{name}")
    runs = _SubTests(request.node)
    from bettong.reports import write_reports

    result = bettong_run(case, out, runs.add if case.is_search else lambda run, schedule: None)
    if case.is_search:
        runs.remember()
    result.write(out)
    write_reports(result, out)
    request.node.add_report_section("setup", "bettong report", str(out / "report.html"))
    return result


class _SubTests:
    """Gathers the runs of a search, to be reported as tests, and remembers their schedules."""

    def __init__(self, item: pytest.Item) -> None:
        self.item = item
        self.seen: dict[str, Mapping[str, Any]] = {}
        self.told: list[dict[str, Any]] = []
        item.stash[_RUNS] = self.told

    def add(self, run: Run, schedule: Mapping[str, Any]) -> None:
        from bettong.harness.testing import run_text

        if not run.faults:
            return
        name = " + ".join(run.faults)
        self.seen[name] = schedule
        text = None if run.outcome == "good" else run_text(run)
        self.told.append({"name": name, "failure": text, "seconds": run.seconds})

    def remember(self) -> None:
        key, memory = _memory_key(self.item), _memory(self.item.config)
        known = {**memory.get(key, {}), **self.seen}
        memory.set(key, dict(list(known.items())[-_KNOWN_AT_MOST:]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    runs = item.stash.get(_RUNS, [])
    if runs:
        # They travel with the report of the search: workers of xdist may report no other test.
        vars(report)["bettong_runs"] = list(runs)
        runs.clear()
    return report


class _Reporting:
    """Reports the runs of a search as tests, in the process that gathers all reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if hasattr(self.config, "workerinput"):
            return
        base = report.nodeid.partition("[")[0]
        path, line, _ = report.location
        for run in getattr(report, "bettong_runs", ()):
            self.config.hook.pytest_runtest_logreport(
                report=pytest.TestReport(
                    nodeid=f"{base}[{run['name']}]",
                    location=(path, line, f"{base.rpartition('::')[2]}[{run['name']}]"),
                    keywords={MARK: 1},
                    outcome="passed" if run["failure"] is None else "failed",
                    longrepr=run["failure"],
                    when="call",
                    duration=run["seconds"],
                )
            )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    if _case_of(pyfuncitem) is None:
        return (yield)
    from bettong.harness.testing import failure_text

    # The test itself may take another name for it or none at all.
    result = pyfuncitem._request.getfixturevalue("bettong_result")
    outcome = yield
    if result.verdict != "valid":
        pytest.fail(failure_text(result), pytrace=False)
    return outcome
