"""A counterexample in words, for someone who has never seen the system."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bettong.harness.faults import kinds as f
from bettong.harness.faults.kinds import Fault, Point
from bettong.harness.faults.step_ids import split_name
from bettong.lineage.results import Anomaly

_STEPS: Sequence[tuple[str, str]] = (
    (r"sender\.connect/(.+)", r"the sender connected"),
    (r"sender\.send/(.+)", r"\1 was sent"),
    (r"sender\.forget/(.+)", r"the sender forgot \1"),
    (r"gateway\.append/(.+)", r"the gateway had \1 in its journal"),
    (r"gateway\.ack/(.+)", r"the gateway acknowledged \1"),
    (r"gateway\.release/(.+)", r"the gateway released \1"),
    (r"epoch=(\d+)/.*open", r"epoch \1 of the query was opened"),
    (r"receiver\.open/epoch=(\d+)", r"the receiver knew epoch \1"),
    (r"batch=(\d+)/source\.plan", r"the messages of batch \1 were chosen"),
    (r"batch=(\d+)/offsets", r"Spark had noted the offsets of batch \1"),
    (r"batch=(\d+)/stage=(\d+)/p=(\d+)/a=\d+/task", r"task \3 of stage \2 of batch \1 ran"),
    (r"batch=(\d+)/p=(\d+)/a=\d+/source\.read", r"part \2 of batch \1 was read"),
    (r"batch=(\d+)/.*p=(\d+)/a=\d+/state\.write", r"the state of part \2 of batch \1 was written"),
    (r"batch=(\d+)/.*p=(\d+)/a=\d+/sink\.prepare", r"part \2 of batch \1 was handed over"),
    (r"receiver\.prepare/batch=(\d+)/p=(\d+).*", r"the receiver had staged part \2 of batch \1"),
    (r"batch=(\d+)/state\.manifest", r"version \1 of the state was named"),
    (r"batch=(\d+)/sink\.commit", r"the receiver was told to commit batch \1"),
    (r"receiver\.commit/batch=(\d+)", r"the receiver had made batch \1 visible"),
    (r"batch=(\d+)/commits", r"Spark had noted that batch \1 was done"),
    (r"batch=(\d+)/source\.commit", r"the gateway was told that batch \1 was done"),
)
_KINDS = {
    "Loss": "is missing",
    "Duplicate": "came more than once",
    "Reorder": "came out of order",
    "Phantom": "was never to be",
    "Corrupt": "has the wrong content",
    "Torn": "was seen in part",
    "StateDivergence": "has the wrong state",
    "Stuck": "never came to an end",
}
_NAMED = 4


def moment(point: Point) -> str:
    """A moment of a run, e.g. ``before the receiver was told to commit batch 1``."""
    step, name = split_name(point.step)
    for pattern, words in _STEPS:
        found = re.fullmatch(pattern, step)
        if found:
            reported = f"{point.phase} {found.expand(words)}"
            reported += f" ({name})" if name else ""
            return reported if point.occurrence == 1 else f"{reported} (time {point.occurrence})"
    return str(point)


def fault_words(fault: Fault) -> str:
    """One fault as a clause."""
    match fault:
        case f.Crash(node=node, at=at, restart=restart):
            return f"the {node} was killed {moment(at)}" + (
                " and came back" if restart else " for good"
            )
        case f.Omit(link=link, at=at):
            return f"the request from {_ends(link)} was lost {moment(at)}"
        case f.OmitReply(link=link, at=at):
            return f"the request from {_ends(link)} was carried out, but its answer was lost, \
{moment(at)}"
        case f.Duplicate(link=link, at=at):
            return f"the request from {_ends(link)} arrived twice, {moment(at)}"
        case f.Pause(node=node, start=start, until=until, replace=replace):
            beside = ", while another one took its place" if replace else ""
            last = moment(until) if until else "all others had done their work"
            return f"the {node} stood still from {moment(start)} until {last}{beside}"
        case f.Cut(left=left, right=right, start=start, until=until, tries=tries):
            last = f" until {moment(until)}" if until else f" for {tries} tries" if tries else ""
            apart = f"{' and '.join(left)} could not reach {' and '.join(right)}"
            return f"{apart} from {moment(start)}{last}"
        case f.PowerCut(node=node, at=at):
            return f"the power of the {node} was cut while {moment(at).partition(' ')[2]}"
        case f.Storage(at=at, errno=errno):
            return f"the disk failed with {errno} {moment(at)}"
        case _:
            return f"the link from {_ends(fault.link)} was disturbed {moment(fault.at)}"


def _ends(link: str) -> str:
    a, _, b = link.partition("->")
    return f"the {a} to the {b}"


def counterexample_words(faults: Sequence[Fault], anomalies: Sequence[Anomaly]) -> str:
    """What happened: the faults, then what a reader saw of it."""
    reported = "; then ".join(fault_words(fault) for fault in faults) or "No fault struck"
    kinds = Counter(a.kind for a in anomalies)
    seen = []
    for kind, count in kinds.most_common():
        ids = [m for a in anomalies if a.kind == kind for m in a.messages][:_NAMED]
        more = f" and {count - len(ids)} more" if count > len(ids) else ""
        what = f"{', '.join(ids)}{more}" if ids else "the run"
        seen.append(f"{what} {_KINDS.get(kind, kind)}")
    afterwards = "; ".join(seen) or "nothing was wrong"
    return f"{reported[:1].upper()}{reported[1:]}. Afterwards {afterwards}."
