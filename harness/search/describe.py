"""A counterexample in words, for someone who has never seen the system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bettong.harness.checkers.kinds import kind_of
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.step_ids import FAULT
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

_NAMED = 4


def as_they_fired(faults: Sequence[Fault], events: Iterable[TraceEvent]) -> list[Fault]:
    """Faults in the order in which they fired in a run; last those that its trace does not name."""
    fired = [e.step.removeprefix(FAULT) for e in events if e.step.startswith(FAULT)]
    return sorted(faults, key=lambda f: fired.index(f.id) if f.id in fired else len(fired))


def counterexample_words(
    faults: Sequence[Fault], anomalies: Sequence[Anomaly], again: str = ""
) -> str:
    """What happened: the faults, then what a reader saw of it; ``again``: not until this had
    happened after the last batch, and every node was started again."""
    reported = "; then ".join(fault.describe() for fault in faults) or "No fault fired"
    kinds = Counter(a.kind for a in anomalies)
    seen = []
    for kind, count in kinds.most_common():
        ids = [m for a in anomalies if a.kind == kind for m in a.messages][:_NAMED]
        more = f" and {count - len(ids)} more" if count > len(ids) else ""
        what = f"{', '.join(ids)}{more}" if ids else "the run"
        seen.append(f"{what} {kind_of(kind).clause}")
    afterwards = "; ".join(seen) or "nothing was wrong"
    begun = f"{reported[:1].upper()}{reported[1:]}."
    if again:
        begun += f" All was right until {again} after the last batch, and all was started again."
    return f"{begun} Afterwards {afterwards}."
