"""Suites: what a team runs in CI, written in ``bettong.toml`` or ``[tool.bettong]``.

::

    [suite.nightly]
    seed = 7

    [[suite.nightly.run]]
    name = "word_count"
    faults = "each-step"
    budget = "10m"
    expect = "effectively-once"

    [suite.nightly.quarantine]
    word_count = { reason = "waits for the new gateway", until = 2026-12-31 }

A result in quarantine is shown but fails nothing, until its last day has passed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from bettong.harness.search.bounds import BOUNDS, PROFILE_NAMES
from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_text
from bettong.lineage.nearest import one_of
from bettong.lineage.results import GUARANTEES, Guarantee, Result

T = TypeVar("T")
OWN_FILE = "bettong.toml"


class SuiteError(UsageError):
    """A suite file that cannot be meant; names the file and the place."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One entry of a suite: options as ``bettong run`` has them.

    Attributes:
        name: of a scenario.
        budget: a number of runs or a time such as ``5m``.
        bounds: the profile of a lineage-driven search; single bounds win.
    """

    name: str
    faults: str = "none"
    expect: Guarantee = "effectively-once"
    budget: str | None = None
    seed: int = 0
    workers: int = 0
    crashes: int | None = None
    losses: int | None = None
    batches: int | None = None
    input: str | None = None
    pauses: int | None = None
    storage: int | None = None
    duplicates: int | None = None
    partitions: int | None = None
    moments: int | None = None
    together: int | None = None
    bounds: str | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A result that may fail for a while.

    Attributes:
        until: the last day on which it may.
    """

    reason: str
    until: date

    def holds(self, today: date) -> bool:
        """Whether a failure is still excused."""
        return today <= self.until


@dataclass(frozen=True, slots=True)
class Suite:
    """Runs that belong together."""

    name: str
    runs: tuple[SuiteRun, ...]
    quarantine: Mapping[str, Quarantine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shard:
    """The I-th of N parts, counted from 1."""

    index: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/5``; raises UsageError."""
        index, slash, of = text.partition("/")
        if not (slash and index.isdecimal() and of.isdecimal() and 0 < int(index) <= int(of)):
            raise UsageError(f"--shard {text}: write I/N with I from 1 to N, such as 2/5")
        return cls(int(index), int(of))


def find_suites(start: Path) -> dict[str, Suite]:
    """Suites of the nearest directory, at or above this one, with a ``bettong.toml`` or a
    ``[tool.bettong]``: of both, if it has both. Raises SuiteError for a suite that is in both."""
    for directory in (start.resolve(), *start.resolve().parents):
        own, project = directory / OWN_FILE, directory / "pyproject.toml"
        in_project = project.is_file() and "bettong" in _toml(project).get("tool", {})
        if not own.is_file() and not in_project:
            continue
        suites = read_suites(own) if own.is_file() else {}
        others = read_suites(project) if in_project else {}
        for name in suites.keys() & others.keys():
            raise SuiteError(f"suite {name} is in {own} and in {project}: keep one of the two")
        return {**suites, **others}
    return {}


def read_suites(path: Path) -> dict[str, Suite]:
    """Suites of one file; raises SuiteError."""
    value = _toml(path)
    if path.name != OWN_FILE:
        value = value.get("tool", {}).get("bettong", {})
    _only(value, ("suite",), str(path))
    suites = _table(value.get("suite", {}), f"{path}: suite")
    return {
        name: _suite(name, content, f"{path}: suite.{name}") for name, content in suites.items()
    }


def excused(result: Result, quarantine: Mapping[str, Quarantine], today: date) -> Result:
    """The result with its quarantine told; what it says is not changed.

    ``details["quarantine"]`` gets reason, last day and whether it still holds: then the exit code
    of the suite leaves the result out.
    """
    known = quarantine.get(result.scenario)
    if known is None or result.verdict == "valid":
        return result
    holds = known.holds(today)
    reported = {"reason": known.reason, "until": known.until.isoformat(), "holds": holds}
    how = "in quarantine" if holds else "its quarantine has ended"
    reason = f"{result.reason} ({how}: {known.reason}, until {known.until})"
    return replace(result, reason=reason, details={**result.details, "quarantine": reported})


def counted(results: Sequence[Result]) -> list[Result]:
    """The results that decide a suite's exit code: those that no quarantine excuses."""
    return [r for r in results if not (r.details.get("quarantine") or {}).get("holds")]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "suites"))
    except UsageError as e:
        raise SuiteError(str(e)) from e
    except (ValueError, RecursionError) as e:
        reason = "it is nested too deep" if isinstance(e, RecursionError) else e
        raise SuiteError(f"cannot read suites from {path}: {reason}") from e


def _suite(name: str, value: Any, where: str) -> Suite:
    table = _table(value, where)
    _only(table, ("run", "quarantine", "seed"), where)
    runs = table.get("run", [])
    if not isinstance(runs, list) or not runs:
        raise SuiteError(f"{where}: write at least one [[suite.{name}.run]]")
    seed = _of(table.get("seed", 0), int, f"{where}.seed")
    found = [_run(r, seed, f"{where}.run[{i}]") for i, r in enumerate(runs)]
    excuses = _table(table.get("quarantine", {}), f"{where}.quarantine")
    names = tuple(dict.fromkeys(r.name for r in found))
    for excused_name in excuses:
        if excused_name not in names:
            one_of(excused_name, names, f"{where}.quarantine")
    return Suite(
        name,
        tuple(found),
        {n: _quarantine(q, f"{where}.quarantine.{n}") for n, q in excuses.items()},
    )


def _run(value: Any, seed: int, where: str) -> SuiteRun:
    table = _table(value, where)
    _only(table, tuple(f.name for f in fields(SuiteRun)), where)
    if "name" not in table:
        raise SuiteError(f"{where}: name is missing")
    for key, given in table.items():
        kind = int if key in ("seed", "workers", *BOUNDS) else str
        _of(given, kind, f"{where}.{key}")
        if key in BOUNDS:
            check_bound(key, given, f"{where}: ")
    if table.get("expect", GUARANTEES[0]) not in GUARANTEES:
        one_of(str(table["expect"]), GUARANTEES, f"{where}.expect")
    if "bounds" in table:
        one_of(table["bounds"], PROFILE_NAMES, f"{where}.bounds", SuiteError)
    if table.get("faults") != "ldfi":
        for key in (k for k in table if k in ("bounds", *BOUNDS)):
            raise SuiteError(
                f'{where}.{key} is for searches by lineage: write faults = "ldfi", or leave it out'
            )
    return SuiteRun(**{"seed": seed, **table})


def _quarantine(value: Any, where: str) -> Quarantine:
    table = _table(value, where)
    _only(table, ("reason", "until"), where)
    if not table.get("reason") or "until" not in table:
        raise SuiteError(f"{where}: a quarantine has a reason and an end: until = 2026-12-31")
    reason = _of(table["reason"], str, f"{where}.reason")
    until = _of(table["until"], date, f"{where}.until")
    if isinstance(until, datetime):  # it is a date, too, and cannot be compared with one
        raise SuiteError(f"{where}.until: the last day is wanted, such as 2026-12-31, not a time")
    return Quarantine(reason, until)


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SuiteError(f"{where}: a table is wanted, not {value!r}")
    return value


def check_bound(name: str, value: Any, where: str = "") -> None:
    """Raise SuiteError unless a bound of a search is a number that it can be."""
    least = 1 if name in ("together", "batches") else 0
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SuiteError(f"{where}{name}={value!r}: a whole number from {least} on is wanted")


def _of(value: Any, kind: type[T], where: str) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise SuiteError(f"{where}: {kind.__name__} is wanted, not {value!r}")
    return value


def _only(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in allowed:
            one_of(name, allowed, where)
