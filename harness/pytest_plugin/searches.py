"""The runs of a search as tests: which are chosen, how they are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from bettong.harness.pytest_plugin.cases import (
    KNOWN_AT_MOST,
    MARK,
    RUNS,
    case_of,
    memory,
    memory_key,
)

if TYPE_CHECKING:
    from bettong.harness.events import Event


class Selection:
    """A search and its remembered runs are not both run: without ``--last-failed`` the search
    is, with it the runs that failed. Those that are chosen alone are run alone."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        searches, runs = set[str](), set[str]()
        for item in items:
            case = case_of(item)
            if case is not None and (case.is_search or case.remembered):
                (runs if case.remembered else searches).add(memory_key(item))
        again = self.config.getoption("lf", False)
        left_out = [i for i in items if self._is_left_out(i, searches, runs, bool(again))]
        if left_out:
            items[:] = [item for item in items if item not in left_out]
            self.config.hook.pytest_deselected(items=left_out)

    def _is_left_out(
        self, item: pytest.Item, searches: set[str], runs: set[str], again: bool
    ) -> bool:
        case = case_of(item)
        if case is None:
            return False
        key = memory_key(item)
        if again:
            return case.is_search and key in runs
        return case.remembered and key in searches


class SubTests:
    """Gathers the runs of a search, to be reported as tests, and remembers their schedules."""

    def __init__(self, item: pytest.Item) -> None:
        self.item = item
        self.seen: dict[str, Mapping[str, Any]] = {}
        self.reported: list[dict[str, Any]] = []
        item.stash[RUNS] = self.reported

    def on_event(self, event: Event) -> None:
        """Keep each run under faults as it is judged."""
        from bettong.harness.events import RunJudged
        from bettong.harness.testing import run_text

        if not isinstance(event, RunJudged) or not event.judged.faults:
            return
        run = event.judged
        name = " + ".join(run.faults)
        self.seen[name] = event.schedule
        text = None if run.outcome == "good" else run_text(run)
        self.reported.append({"name": name, "failure": text, "seconds": run.seconds})

    def remember(self) -> None:
        key, kept = memory_key(self.item), memory(self.item.config)
        known = {**kept.get(key, {}), **self.seen}
        kept.set(key, dict(list(known.items())[-KNOWN_AT_MOST:]))


class Reporting:
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
