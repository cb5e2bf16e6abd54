"""How an anomaly came about, as far as the trace shows: which steps handed a message over
twice, after which one nothing moved it any more, what a node said when it went down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bettong.harness.faults.step_ids import REPLAY
from bettong.harness.search.occurrences import Occurrence, read_occurrences
from bettong.harness.search.why import Message
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

_SPEAK = ("Stuck", "Died", "Leak", "Violation", "Torn")


def mechanism(events: Iterable[TraceEvent], anomalies: Sequence[Anomaly]) -> list[str]:
    """A sentence for the first anomaly of each kind that the trace, or the anomaly itself, says
    more about; what was done once more after the last batch counts."""
    all_of_them = (event for event in events if not event.step.startswith(REPLAY))
    done = [o for o in read_occurrences(all_of_them).occurrences if o.ended is not None]
    first = {anomaly.kind: anomaly for anomaly in reversed(anomalies)}
    return [text for anomaly in first.values() for text in _of(anomaly, done)]


def _of(anomaly: Anomaly, done: Sequence[Occurrence]) -> Iterator[str]:
    if anomaly.kind in _SPEAK and anomaly.note:
        yield anomaly.note
        return
    asked = anomaly.messages[0].partition("@")[0] if anomaly.messages else ""
    message = Message.of(asked)
    if message is None:
        return
    moved = [o for o in done if message.moved_by(o)]
    if anomaly.kind == "Loss" and moved:
        yield f"nothing moved {asked} after {_phrase(moved[-1])}"
    shown = [o for o in moved if "/sink.commit" in o.step]
    if anomaly.kind == "Duplicate" and len(shown) > 1:
        yield f"{asked} was handed over by {' and again by '.join(map(_phrase, shown))}"


def _phrase(o: Occurrence) -> str:
    return f"{o.name} (the {o.node}, start {o.incarnation})"
