"""A counterexample in words, for someone who has never seen the system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bettong.harness.faults.fault import Fault
from bettong.lineage.results import Anomaly

_KINDS = {
    "Loss": "is missing",
    "Duplicate": "came more than once",
    "Reorder": "came out of order",
    "Phantom": "was never to be",
    "Corrupt": "has the wrong content",
    "Torn": "was seen in part",
    "StateDivergence": "has the wrong state",
    "Stuck": "never came to an end",
    "Died": "needed a process to be started again that had ended by itself",
}
_NAMED = 4


def counterexample_words(faults: Sequence[Fault], anomalies: Sequence[Anomaly]) -> str:
    """What happened: the faults, then what a reader saw of it."""
    reported = "; then ".join(fault.describe() for fault in faults) or "No fault fired"
    kinds = Counter(a.kind for a in anomalies)
    seen = []
    for kind, count in kinds.most_common():
        ids = [m for a in anomalies if a.kind == kind for m in a.messages][:_NAMED]
        more = f" and {count - len(ids)} more" if count > len(ids) else ""
        what = f"{', '.join(ids)}{more}" if ids else "the run"
        seen.append(f"{what} {_KINDS.get(kind, kind)}")
    afterwards = "; ".join(seen) or "nothing was wrong"
    return f"{reported[:1].upper()}{reported[1:]}. Afterwards {afterwards}."
