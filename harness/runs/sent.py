"""Whether each sender has noted that all it has sent is safe: what it goes by when it is started
again, and all that tells anybody of a gateway that has lost what it had acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bettong.engine.ingest.acked import read_acked
from bettong.harness.cluster.layout import Layout
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import PowerCut
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly


def to_be_noted(senders: Mapping[str, str], faults: Iterable[Fault]) -> frozenset[str]:
    """The streams whose senders have it noted in the end that all is safe, whatever has failed: who
    is told that a note was not written gives up, and makes it when it is started again. But nobody
    waits for a note to be durable, and a sender that has ended makes none again that a power cut
    has taken.

    Args:
        senders: the node of each stream.
        faults: of the run.
    """
    cut = {node for fault in faults if isinstance(fault, PowerCut) for node in fault.nodes}
    return frozenset(stream for stream, node in senders.items() if node not in cut)


def check_sent(layout: Layout, sent: Mapping[str, int]) -> tuple[Anomaly, ...]:
    """A StateDivergence for each sender whose notes do not say so.

    Args:
        layout: of the run, of which every sender has come to its end.
        sent: how many messages each stream has.
    """
    found = []
    for stream, number in sent.items():
        try:
            upto, ended = read_acked(layout.acked(stream), stream)
        except (OSError, UsageError) as e:
            found.append(_diverged(stream, number, str(e)))
            continue
        if (upto, ended) != (number, True):
            found.append(_diverged(stream, number, {"acked": upto, "ended": ended}))
    return tuple(found)


def _diverged(stream: str, number: int, seen: object) -> Anomaly:
    return Anomaly(
        "StateDivergence",
        expected={"acked": number, "ended": True},
        seen=seen,
        note=f"the sender of {stream} has not noted that all of it is safe",
    )
