"""The result of a run, a search or a check: everything that reports and CI read.

A :class:`Result` is written as ``result.json`` under ``result.schema.json`` (in this package).
Reports are made from it alone.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Literal

import jsonschema

from bettong.lineage.errors import UsageError
from bettong.lineage.faults import kind_of
from bettong.lineage.files import read_json
from bettong.lineage.seals import check, unseal, write_sealed

SCHEMA_VERSION = 1

Verdict = Literal["valid", "invalid", "unknown"]
Guarantee = Literal["effectively-once", "at-least-once", "at-most-once", "none"]
Ordering = Literal["per-key", "none"]
AnomalyKind = str
"""Such as ``Loss``: one word, in CamelCase. Checkers of packages bring kinds of their own."""
Outcome = Literal["good", "violation", "vacuous", "not-injected", "unknown"]

GUARANTEES: tuple[Guarantee, ...] = ("effectively-once", "at-least-once", "at-most-once", "none")
EXIT_CODES: Mapping[Verdict, int] = {"valid": 0, "invalid": 1, "unknown": 3}


REPORTS = ("report.html", "report.md", "junit.xml")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One way in which what was seen differs from what was expected.

    Attributes:
        kind: what went wrong. ``Violation`` is a protocol's postcondition that does not hold.
        messages: ids of the messages concerned, the witnesses.
        key: their key, when they have one in common.
        expected: what should have been seen, as a reader would see it.
        seen: what was seen.
        note: a finer class or a sentence, e.g. ``"tail lost"``.
    """

    kind: AnomalyKind
    messages: tuple[str, ...] = ()
    key: str | None = None
    expected: Any = None
    seen: Any = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A minimal set of faults that breaks the system.

    Attributes:
        faults: stable ids of the faults, sorted.
        anomalies: what they cause.
        schedule: the fault schedule as it is injected, in the form of a schedule file.
        replay: the command that shows it again.
        words: what happens, told for someone who has never seen the system.
        advice: what to repair.
        frontier: the firings of the good run, nearest the goal first, that this one lacks.
        trace: file of the run's trace, relative to the result.
    """

    faults: tuple[str, ...]
    anomalies: tuple[Anomaly, ...] = ()
    schedule: Mapping[str, Any] = field(default_factory=dict)
    replay: str = ""
    words: str = ""
    advice: str = ""
    frontier: tuple[str, ...] = ()
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a verdict rests on. Counts are of fault sets unless they say otherwise.

    Attributes:
        goals: goals whose lineage was read.
        supports: distinct supports of those goals that runs have shown.
        hypotheses: fault sets that the lineage put up.
        injected: of these, run with every fault fired.
        not_injected: planned but not fired.
        vacuous: run, but with the precondition not met.
        pruned: not run, because equivalent to or dominated by one that was.
        combinations: size of what was considered when hypotheses were drawn up.
        executions: all runs, the failure-free ones included.
        fault_space: schedules within the bounds, when that can be counted.
        violated: runs that broke the goal.
        to_first: executions up to and with the first violation.
        complete: nothing within the bounds is left to be tried.
    """

    goals: int = 0
    supports: int = 0
    hypotheses: int = 0
    injected: int = 0
    not_injected: int = 0
    vacuous: int = 0
    pruned: int = 0
    combinations: int = 0
    executions: int = 0
    fault_space: int | None = None
    violated: int = 0
    to_first: int | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One execution under one fault schedule.

    Attributes:
        faults: ids of the faults that were planned.
        outcome: how it was judged.
        evidence: for each fault id, the proof that it fired.
        not_fired: planned faults without such proof.
        anomalies: what was wrong with the outputs.
        seconds: wall time.
        trace: file of the run's trace, relative to the result.
        note: why the outcome is unknown, or anything else worth a line.
    """

    faults: tuple[str, ...]
    outcome: Outcome
    evidence: Mapping[str, str] = field(default_factory=dict)
    not_fired: tuple[str, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    seconds: float = 0.0
    trace: str | None = None
    note: str = ""

    @property
    def fault_kinds(self) -> tuple[str, ...]:
        """The kinds of the planned faults, in their order."""
        return tuple(map(kind_of, self.faults))


def of_each_kind(anomalies: Sequence[Anomaly], most: int) -> tuple[Anomaly, ...]:
    """The first so many, in their order, among which the first one of each kind is in any case."""
    first = {a.kind: place for place, a in reversed(list(enumerate(anomalies)))}.values()
    others = [place for place in range(len(anomalies)) if place not in first]
    chosen = sorted([*first, *others[: max(0, most - len(first))]])
    return tuple(anomalies[place] for place in chosen)


def environment() -> dict[str, str]:
    """The versions and the machine that a result was made with."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("pyspark", "pyarrow", "pandas", "python-sat"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def tool_version() -> str:
    """Bettong's own version."""
    return metadata.version("bettong")


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one question, with what it rests on.

    Attributes:
        scenario: name of the scenario, sink, protocol or comparison that was judged.
        verdict: ``valid``, ``invalid`` or ``unknown``.
        guarantee: the level that was found.
        ordering: the ordering that was found.
        expected: the level that was asked for.
        reason: one sentence: why this verdict.
        assumptions: what the verdict takes for granted: crash model, bounds, equivalences, limits.
        started_at: ISO 8601, UTC.
        duration_s: seconds.
        kind: what was judged.
        details: further facts of this kind of question, JSON values only.
    """

    scenario: str
    verdict: Verdict
    guarantee: Guarantee = "none"
    ordering: Ordering = "none"
    anomalies: tuple[Anomaly, ...] = ()
    counterexamples: tuple[Counterexample, ...] = ()
    coverage: Coverage = Coverage()
    runs: tuple[Run, ...] = ()
    seed: int = 0
    started_at: str = ""
    duration_s: float = 0.0
    environment: Mapping[str, str] = field(default_factory=environment)
    kind: Literal["scenario", "sink", "job", "protocol", "check"] = "scenario"
    expected: Guarantee | None = None
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
    tool_version: str = field(default_factory=tool_version)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as ``result.json`` holds them; ``assumptions`` stands there also
        under its former name, which scripts know."""
        value: dict[str, Any] = json.loads(json.dumps(finite(asdict(self))))
        return {**value, "rests_on": value["assumptions"]}

    def write(self, directory: Path) -> Path:
        """Write ``result.json`` into the directory and return its path."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "result.json"
        write_sealed(path, json.dumps(self.to_dict(), indent=1) + "\n")
        return path

    @classmethod
    def from_dict(cls, value: Any) -> Result:
        """The result of parsed JSON; raises UsageError when it does not fit the schema."""
        version = value.get("schema_version") if isinstance(value, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise UsageError(
                f"a result of a newer Bettong (schema {version}, this one reads up to "
                f"{SCHEMA_VERSION}): install that version"
            )
        try:
            jsonschema.validate(value, schema())
        except jsonschema.ValidationError as e:
            where = "/".join(str(p) for p in e.absolute_path) or "the top"
            raise UsageError(f"not a Bettong result: at {where}: {e.message[:300]}") from e

        def anomaly(a: dict[str, Any]) -> Anomaly:
            return Anomaly(**{**a, "messages": tuple(a["messages"])})

        def anomalies(items: list[dict[str, Any]]) -> tuple[Anomaly, ...]:
            return tuple(anomaly(a) for a in items)

        return cls(
            **{
                **{name: part for name, part in value.items() if name != "rests_on"},
                "anomalies": anomalies(value["anomalies"]),
                "counterexamples": tuple(
                    Counterexample(
                        **{
                            **c,
                            "faults": tuple(c["faults"]),
                            "frontier": tuple(c["frontier"]),
                            "anomalies": anomalies(c["anomalies"]),
                        }
                    )
                    for c in value["counterexamples"]
                ),
                "coverage": Coverage(**value["coverage"]),
                "runs": tuple(
                    Run(
                        **{
                            **r,
                            "faults": tuple(r["faults"]),
                            "not_fired": tuple(r["not_fired"]),
                            "anomalies": anomalies(r["anomalies"]),
                        }
                    )
                    for r in value["runs"]
                ),
                "assumptions": tuple(value.get("assumptions", value["rests_on"])),
            }
        )

    @classmethod
    def read(cls, path: Path) -> Result:
        """The result in a file, or in a directory's ``result.json``; raises UsageError."""
        file = path / "result.json" if path.is_dir() else path
        value = read_json(file, "the result")
        try:
            found = cls.from_dict(value)
        except UsageError as e:
            raise UsageError(f"{file}: {e}") from e
        check(file)
        return found


def finite(value: Any) -> Any:
    """The value with what JSON has no number for (NaN, Infinity) as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def begin_answer(directory: Path, names: Sequence[str] = ("result.json", *REPORTS)) -> None:
    """Look after the folder of an answer before anything is begun.

    An earlier answer there is moved aside (``result.json.old``), so that a run that fails leaves
    none that could be taken for its own. A folder that is not there is not made yet. Raises
    OSError where nothing can be written.
    """
    if not directory.exists():
        above = next(path for path in directory.absolute().parents if path.exists())
        refused = 0 if above.is_dir() else errno.ENOTDIR
        if not refused and not os.access(above, os.W_OK | os.X_OK):
            refused = errno.EACCES
        if refused:
            raise OSError(refused, os.strerror(refused), str(directory))
        return
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(b"room")
    for name in names:
        unseal(directory / name)
        with contextlib.suppress(FileNotFoundError):
            (directory / name).replace(directory / f"{name}.old")


def schema() -> dict[str, Any]:
    """The JSON Schema of ``result.json``."""
    text = resources.files("bettong.lineage").joinpath("result.schema.json").read_text("utf-8")
    value: dict[str, Any] = json.loads(text)
    return value
