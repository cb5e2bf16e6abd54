"""What a test marked ``bettong`` runs, and which runs of a search are remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bettong.harness.search.bounds import BOUNDS, PROFILE_NAMES
from bettong.harness.suites.suite import check_bound
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.results import GUARANTEES, Guarantee

MARK = "bettong"
CASE = "bettong_case"
_SEARCHES = ("each-step", "random:", "ldfi")
KNOWN_AT_MOST = 2000
RUNS = pytest.StashKey[list[dict[str, Any]]]()


@dataclass(frozen=True)
class Case:
    """What one test runs.

    Attributes:
        scenario: its name, or a job's target.
        faults: ``none``, a file, a search, or a schedule as a mapping.
        remembered: the schedule was one of a search, which runs it too.
        is_job: whether it is a streaming job that is checked as ``bettong check-job`` does.
    """

    scenario: str
    faults: str | Mapping[str, Any]
    expect: Guarantee
    options: Mapping[str, Any]
    remembered: bool = False
    is_job: bool = False

    @property
    def is_search(self) -> bool:
        """Whether the schedules are only known when it runs."""
        return (
            not self.is_job and isinstance(self.faults, str) and self.faults.startswith(_SEARCHES)
        )


def cases_of(marker: pytest.Mark, test: pytest.Item) -> dict[str, Case]:
    """The cases of a mark, by their ids; raises UsageError, naming the test."""
    try:
        return _cases(marker, test)
    except BettongError as e:
        raise pytest.UsageError(f"{test.nodeid}: @pytest.mark.bettong: {e}") from e


def _cases(marker: pytest.Mark, test: pytest.Item) -> dict[str, Case]:
    if sum(mark.name == MARK for mark in test.own_markers) > 1:
        raise pytest.UsageError(
            f"{test.nodeid}: several @pytest.mark.bettong, of which one would be run: write one "
            "test for each, or give faults=[…] to one"
        )
    given: dict[str, Any] = dict(marker.kwargs)
    _check(given)
    if "job" in given:
        return _job_case(given, test)
    _expect_named(marker, given, test)
    scenario, faults = given.pop("scenario"), given.pop("faults", "none")
    expect = given.pop("expect", "effectively-once")
    several = list(faults) if isinstance(faults, list | tuple) else [faults]
    _expect_faults(several, given)
    cases: dict[str, Case] = {}
    own: dict[str, str | Mapping[str, Any]] = {}
    for one in several:
        case = Case(scenario, one, expect, given)
        if case.is_search:
            known = memory(test.config).get(memory_key(test), {})
            for name, schedule in known.items():
                cases[name] = Case(scenario, schedule, expect, given, remembered=True)
        name = case_id(one)
        if own.setdefault(name, one) != one:  # a file of the same name in another folder
            name = one if isinstance(one, str) else f"{name} ({len(own)})"
            own[name] = one
        cases[name] = case
    return cases


def _expect_named(marker: pytest.Mark, given: Mapping[str, Any], test: pytest.Item) -> None:
    """Raises pytest.UsageError for arguments without a name, or of another one."""
    known = {"scenario", "faults", "expect", "seed", "input_file", "budget", "bounds", *BOUNDS}
    unknown = set(given) - known
    if marker.args or unknown or "scenario" not in given:
        raise pytest.UsageError(
            f"{test.nodeid}: @pytest.mark.bettong takes scenario=…, faults=…, expect=…, seed=…, "
            f"input_file=…, budget=…, bounds=…, {'=…, '.join(BOUNDS)}=… by name"
            f"{': not ' + ', '.join(unknown) if unknown else ''}"
        )


def _expect_faults(several: Sequence[object], given: Mapping[str, Any]) -> None:
    """Raises UsageError for what says no faults, and for the bounds of no search."""
    if not several:
        raise UsageError("faults=[…] is empty: nothing would be run")
    bounding = [n for n in ("bounds", *BOUNDS) if given.get(n) is not None]
    if bounding and "ldfi" not in several:
        raise UsageError(
            f"{bounding[0]}=… is for searches by lineage: write faults='ldfi', or leave it out"
        )
    for one in several:
        if not isinstance(one, str | Mapping):
            raise UsageError(
                f"faults={one!r}: it is none, ldfi, each-step, random:N, a schedule's file or a "
                "schedule"
            )


def _check(given: Mapping[str, Any]) -> None:
    """Raise UsageError for an argument that would only be seen when the test runs, or not then."""
    if not isinstance(scenario := given.get("scenario", ""), str):
        from bettong.harness.scenario import Scenario  # only those that have made one wait for it

        if not isinstance(scenario, Scenario):
            raise UsageError(f"scenario={scenario!r}: the name of a scenario is wanted, or one")
    if not isinstance(job := given.get("job", ""), str):
        raise UsageError(f"job={job!r}: the target of a job is wanted, such as jobs.py:Job")
    expect = given.get("expect", GUARANTEES[0])
    if expect not in GUARANTEES:
        raise UsageError(f"expect={expect!r}: there are {', '.join(GUARANTEES)}")
    if "budget" in given:
        from bettong.lineage.search.loop import Budget  # only those that search wait for it

        Budget.parse(str(given["budget"]))
    for name in given.keys() & set(BOUNDS):
        check_bound(name, given[name])
    if given.get("bounds") is not None:
        one_of(str(given["bounds"]), PROFILE_NAMES, "bounds")


def _job_case(given: dict[str, Any], test: pytest.Item) -> dict[str, Case]:
    target, faults = given.pop("job"), given.pop("faults", "ldfi")
    expect = given.pop("expect", "effectively-once")
    unknown = set(given) - {"budget"}
    if unknown or faults not in ("ldfi", "none"):
        raise pytest.UsageError(
            f"{test.nodeid}: @pytest.mark.bettong(job=…) takes faults='ldfi' or 'none', expect=… "
            "and budget=… by name"
        )
    return {case_id(faults): Case(target, faults, expect, given, is_job=True)}


def case_id(faults: str | Mapping[str, Any]) -> str:
    if not isinstance(faults, str):
        from bettong.harness.faults.schedule import Schedule

        return " + ".join(Schedule.from_dict(faults).ids)
    if faults == "none":
        return "no fault"
    return faults if faults.startswith(_SEARCHES) else Path(faults).stem


def memory(config: pytest.Config) -> Any:
    return getattr(config, "cache", None) or _NoCache()


class _NoCache:
    def get(self, key: str, default: Any) -> Any:
        return default

    def set(self, key: str, value: Any) -> None:
        pass


def memory_key(test: pytest.Item) -> str:
    name = test.nodeid.partition("[")[0]
    return f"bettong/{hashlib.sha256(name.encode()).hexdigest()[:24]}"


def case_of(item: pytest.Item) -> Case | None:
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get(CASE) if callspec is not None else None
    return case if isinstance(case, Case) else None
