"""What a run of a sink shows: anomalies of what a reader saw, and whether batches are atomic."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bettong.harness.checkers import (
    Snapshot,
    check_atomicity,
    malformed,
    output_anomalies,
    stuck,
)
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sink.rows import Input, judged_fields, records
from bettong.lineage.results import Anomaly


@dataclass(frozen=True, slots=True)
class SinkVerdict:
    """One run, judged.

    Attributes:
        anomalies: of what was there in the end.
        torn: batches of which a reader saw a part in the middle of the run.
        malformed: why the run cannot be judged, or empty.
    """

    anomalies: tuple[Anomaly, ...]
    torn: tuple[Anomaly, ...]
    malformed: str = ""

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of anomalies in the end."""
        return frozenset(a.kind for a in self.anomalies)


def judge_run(
    run: QueryRun,
    source: Input,
    ordered: bool,
    stands_from: int | None = None,
    fields: Collection[str] = (),
) -> SinkVerdict:
    """Compare what was read back with what was given.

    ``stands_from``: the batch from which on a query that stands still and says why is right; the
    source's odd row, if it has one, may also be changed.
    ``fields``: of rows, which runs without faults have shown.
    """
    if run.unreadable:
        unreadable = Anomaly("Violation", seen=cause(run.unreadable), note="read() fails")
        return SinkVerdict((unreadable,), _torn(run, source))
    fields = judged_fields(run.rows, fields)
    expected = records(source.all(), fields)
    observed = records(run.rows, fields)
    bad = malformed(expected, observed)
    if bad:
        return SinkVerdict((), (), bad[0])
    if stands_from is not None:
        found = output_anomalies(expected, observed, "none")
        stood_from = stands_from if run.errors and not run.drained else source.batches
        beside = tuple(a for a in found if not _excused(a, source, stood_from))
        return SinkVerdict(beside, _torn(run, source))
    order = "per-key" if ordered and "key" in fields else "none"
    anomalies = output_anomalies(expected, observed, order)  # type: ignore[arg-type]
    if not run.drained:
        missing = {r.id for r in expected} - {r.id for r in observed}
        why = cause(run.errors[-1]) if run.errors else "it does not end"
        anomalies.append(stuck(why, sorted(str(id) for id in missing)))
    anomalies += planned_again(run)
    return SinkVerdict(tuple(anomalies), _torn(run, source))


def planned_again(run: QueryRun) -> list[Anomaly]:
    """Whatever came of it this time: a query that begins again at a batch that it has done cuts
    its input anew, and goes by luck."""
    batch = run.planned_again
    if batch is None:
        return []
    return [
        Anomaly(
            "StateDivergence",
            expected=f"batch {batch}, which was recorded as done, is not planned again",
            seen=f"batch {batch} was recorded as done, and then planned again as if it was new",
            note="the query did not find its checkpoint when it was started again",
        )
    ]


def _excused(anomaly: Anomaly, source: Input, stood_from: int) -> bool:
    """Whether it is what may come of a row that the target refuses, or of a replay that comes too
    late: the row is changed, or the query has stopped before it was written, with what comes after
    it."""
    if anomaly.kind == "Corrupt":
        return anomaly.messages == (source.odd_id,)
    known = (source.batch_of(id) or 0 for id in anomaly.messages)
    return anomaly.kind == "Loss" and all(batch >= stood_from for batch in known)


def _torn(run: QueryRun, source: Input) -> tuple[Anomaly, ...]:
    snapshots = [
        Snapshot(name, frozenset(str(row.get("id")) for row in rows)) for name, rows in run.looks
    ]
    batches = {n: [row["id"] for row in source.batch(n)] for n in range(source.batches)}
    return check_atomicity({n: ids for n, ids in batches.items() if ids}, snapshots)


def fingerprint(run: QueryRun) -> str:
    """Equal for runs that took the same steps and ended with the same rows."""
    rows = sorted(repr(sorted(row.items())) for row in run.rows)
    return hashlib.sha256(repr((rows, run.steps)).encode()).hexdigest()[:16]


def ids_in_words(ids: Sequence[str]) -> str:
    """Ids as a person writes them: ranges where they follow each other."""
    numbers = sorted(set(ids))
    groups: list[list[str]] = []
    for id in numbers:
        if groups and _number(id) == _number(groups[-1][-1]) + 1:
            groups[-1].append(id)
        else:
            groups.append([id])
    reported = [g[0] if len(g) == 1 else f"{g[0]} … {g[-1]}" for g in groups]
    return ", ".join(reported[:4]) + (f" and {len(reported) - 4} more" if len(reported) > 4 else "")


def _number(id: str) -> int:
    tail = id.rpartition("/")[2]
    return int(tail) if tail.isdigit() else -2
