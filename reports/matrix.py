"""Sinks by level and by kinds of fault: what each claims and what was found, and what it withstood
in the runs of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.lineage.results import Outcome, Result, Run
from bettong.reports.words import level_found

NO_FAULT, SEVERAL = "no fault", "several faults"
LEVELS = ("claimed", "found")
_WORSE: tuple[Outcome, ...] = ("good", "vacuous", "not-injected", "unknown", "violation")
_WORD: Mapping[Outcome, str] = {"good": "withstood", "violation": "broken"}


def fault_matrix(results: Sequence[Result]) -> dict[str, Any]:
    """``rows``, ``columns`` and ``cells`` as ``details["matrix"]`` has them: for each result the
    level that was asked for and the one that was found, and the worst outcome of its runs under one
    fault of a kind, and how many there were."""
    found = [_by_kind(result.runs) for result in results]
    kinds = {kind for by_kind in found for kind in by_kind}
    columns = [NO_FAULT, *sorted(kinds - {NO_FAULT, SEVERAL}), SEVERAL]
    columns = [column for column in columns if column in kinds]
    return {
        "rows": [result.scenario for result in results],
        "columns": [*LEVELS, *columns],
        "cells": [
            [result.expected or "nothing", level_found(result)]
            + [_cell(by_kind.get(kind, [])) for kind in columns]
            for result, by_kind in zip(results, found, strict=True)
        ],
    }


@dataclass(frozen=True, slots=True)
class MatrixTable:
    """A matrix as it is shown: each row has a head, each cell its text and the outcome that colours
    it, if any."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]]


def matrix_table(matrix: Mapping[str, Any]) -> MatrixTable:
    """The table of ``details["matrix"]``."""
    rows = zip(matrix["rows"], matrix["cells"], strict=False)
    return MatrixTable(
        [str(column) for column in matrix["columns"]],
        [(str(head), [_table_cell(str(cell)) for cell in cells]) for head, cells in rows],
    )


def _table_cell(text: str) -> tuple[str, str]:
    return next((o for o, word in _WORD.items() if text.startswith(word)), ""), text


def _by_kind(runs: Sequence[Run]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for run in runs:
        found.setdefault(_kind(run.fault_kinds), []).append(run.outcome)
    return found


def _kind(fault_kinds: Sequence[str]) -> str:
    if len(fault_kinds) > 1:
        return SEVERAL
    return fault_kinds[0] if fault_kinds else NO_FAULT


def _cell(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "not tried"
    worst = max(outcomes, key=_WORSE.index)
    times = f"{outcomes.count(worst)} of {len(outcomes)}" if worst != "good" else f"{len(outcomes)}"
    return f"{_WORD.get(worst, worst)} ({times})"
