"""Joining what several machines brought: the shards of one question into one verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace

from bettong.lineage.results import GUARANTEES, Coverage, Guarantee, Result, Verdict
from bettong.reports.sample import anomaly_counts
from bettong.reports.words import shard_of

_SHARED = frozenset(["goals", "supports", "fault_space", "combinations"])
"""Coverage counts that each shard reports of the whole question."""


def join(results: Sequence[Result]) -> list[Result]:
    """One result for each question, in the order of their entries in the suite, or else in that
    in which they first came.

    Results that are not shards and stand alone are left as they are. Of shards the worst verdict
    and the weakest level count, and when one is missing or comes twice a valid verdict becomes
    unknown: a part of the answer proves nothing of the whole. So is an entry of a suite of which
    no part came at all.
    """
    groups: dict[tuple[int, str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[_entry(result)[0], result.kind, result.scenario].append(result)
    found = [groups[key] for key in sorted(groups, key=lambda key: key[0])]
    joined = [g[0] if len(g) == 1 and shard_of(g[0]) is None else _joined(g) for g in found]
    return [*joined, *_absent(joined)]


def _entry(result: Result) -> tuple[int, int]:
    """(number, how many there are) of an entry of what several machines shared, or (0, 0)."""
    entry = result.details.get("entry")
    if isinstance(entry, dict) and {"number", "of"} <= entry.keys():
        return int(entry["number"]), int(entry["of"])
    return 0, 0


def _absent(results: list[Result]) -> list[Result]:
    entries = [_entry(result) for result in results]
    numbers, of = {number for number, _ in entries}, max((of for _, of in entries), default=0)
    return [
        Result(
            scenario=f"entry {number} of {of}",
            verdict="unknown",
            reason="no machine brought a result of it",
        )
        for number in range(1, of + 1)
        if number not in numbers
    ]


def _joined(parts: list[Result]) -> Result:
    problem = _incomplete(parts)
    verdicts = {part.verdict for part in parts}
    verdict: Verdict = (
        "invalid"
        if "invalid" in verdicts
        else "unknown"
        if problem or "unknown" in verdicts
        else "valid"
    )
    worst = [p for p in parts if p.verdict == verdict] or parts
    reasons = dict.fromkeys(p.reason for p in worst if p.reason)
    counts = {
        kind: sum(anomaly_counts(p).get(kind, 0) for p in parts)
        for kind in sorted({kind for p in parts for kind in anomaly_counts(p)})
    }
    details = {k: v for p in parts for k, v in p.details.items() if k != "shard"}
    details |= {"joined": len(parts)} | ({"anomaly_counts": counts} if counts else {})
    return replace(
        parts[0],
        verdict=verdict,
        guarantee=_weakest([p.guarantee for p in parts if p.verdict != "unknown"]),
        ordering="per-key" if all(p.ordering == "per-key" for p in parts) else "none",
        anomalies=tuple(a for p in parts for a in p.anomalies),
        counterexamples=tuple(c for p in parts for c in p.counterexamples),
        coverage=_coverage([p.coverage for p in parts], complete=not problem),
        runs=tuple(r for p in parts for r in p.runs),
        started_at=min(p.started_at for p in parts),
        duration_s=max(p.duration_s for p in parts),
        reason="; ".join([*([problem] if problem else []), *reasons]),
        assumptions=tuple(dict.fromkeys(line for p in parts for line in p.assumptions)),
        details=details,
    )


def _incomplete(parts: list[Result]) -> str:
    """Why these are not all the shards of one question, or nothing."""
    shards = [shard_of(p) for p in parts]
    reported = [s for s in shards if s is not None]
    if len(reported) < len(parts):
        return f"{len(parts)} results of {parts[0].scenario} are not all shards of one question"
    if len({of for _, of in reported}) > 1 or len({p.seed for p in parts}) > 1:
        return "the shards come from different splits or seeds"
    if len({(p.expected, _label(p, "faults")) for p in parts}) > 1:
        return "the shards were asked for different faults or levels"
    if len({(p.tool_version, _label(p, "question")) for p in parts}) > 1:
        return (
            "the shards were asked with different options or inputs, or of different code: run all "
            "of them with the same"
        )
    numbers = sorted(index for index, _ in reported)
    of = reported[0][1]
    missing = sorted(set(range(1, of + 1)) - set(numbers))
    if missing:
        return f"shards {', '.join(map(str, missing))} of {of} are missing"
    if len(numbers) > of:
        return "a shard came twice"
    return ""


def _label(part: Result, name: str) -> str:
    """What the label of a shard says, where it says so."""
    return str(part.details["shard"].get(name, ""))


def _weakest(levels: list[Guarantee]) -> Guarantee:
    """The strongest level that all of these satisfy."""
    found = set(levels)
    if not found:
        return "none"
    if {"at-least-once", "at-most-once"} <= found:
        return "none"
    return max(found, key=GUARANTEES.index)


def _coverage(parts: list[Coverage], *, complete: bool) -> Coverage:
    values: dict[str, int | bool | None] = {}
    for field in fields(Coverage):
        reported = [getattr(part, field.name) for part in parts]
        known = [value for value in reported if value is not None]
        if field.name == "complete":
            values[field.name] = complete and all(reported)
        elif field.name == "to_first":
            values[field.name] = min(known, default=None)
        else:
            values[field.name] = (
                None if not known else max(known) if field.name in _SHARED else sum(known)
            )
    return Coverage(**values)  # type: ignore[arg-type]
