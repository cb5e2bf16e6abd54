"""Who may end by itself under which faults: what the right engine promises of each node.

A supervisor starts again whatever ends, and hides by that a system that falls over where it
should go on. So each such end is an anomaly, but for those that a node's contract names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bettong.engine.ingest.sender import GAVE_UP
from bettong.harness.conductor.fault_status import Injected
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Storage
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.step_ids import FAULT, NODE_START, StepId
from bettong.lineage.trace import TraceEvent


@dataclass(frozen=True, slots=True)
class Contract:
    """One way in which a node may end.

    Attributes:
        role: of the node.
        under: whether a fault that has fired lets it.
        own: only where the fault has hit that node itself, which then ends once.
        why: what the node promises.
        status: the exit status that it ends with, if any one.
        fenced: only where another start of the node has fenced it.
        but: not with such last words, which tell of something else.
    """

    role: str
    under: Callable[[Fault], bool]
    own: bool
    why: str
    status: int | None = None
    fenced: bool = False
    but: re.Pattern[str] | None = None


_NOT_FOR_SILENCE = re.compile(r"bettong\.[\w.]+: (?!(Kafka: )?gave up after )")
"""An error of the engine's own that is not the one of who has waited in vain."""


def _disk(fault: Fault) -> bool:
    """Not so a power cut: whoever is started after one has a disk that works."""
    return isinstance(fault, Storage)


def _unreachable(fault: Fault) -> bool:
    return fault.parts_for_good


def _outlasts_patience(fault: Fault) -> bool:
    return fault.ends_patience


def _replaced(fault: Fault) -> bool:
    return fault.replaces


CONTRACTS: Sequence[Contract] = (
    Contract(
        DRIVER,
        _disk,
        True,
        "a driver whose disk fails cannot know what is durable: it ends, and goes on from there",
    ),
    Contract(
        "sender",
        _disk,
        True,
        "a sender whose disk fails cannot note what is safe: it gives up, and asks the gateway \
when it is started again",
        GAVE_UP,
    ),
    Contract(
        DRIVER,
        _replaced,
        True,
        "a driver that another one has replaced is fenced: it ends",
        1,
        fenced=True,
    ),
    Contract(
        DRIVER,
        _unreachable,
        False,
        "a driver gives up when nobody answers for a minute",
        1,
        but=_NOT_FOR_SILENCE,
    ),
    Contract(
        DRIVER,
        _outlasts_patience,
        True,
        "a driver gives up when its patience ends",
        1,
        but=_NOT_FOR_SILENCE,
    ),
    Contract(
        "sender", _unreachable, False, "a sender gives up when nobody answers for a minute", GAVE_UP
    ),
)
"""The gateway and the receiver never end once they have started: a request that their disk fails is
refused, and asked again. Where it fails while they start, they are started again."""


def role_of(node: str) -> str:
    """What a node does: a worker's disk is the driver's, who answers for its tasks."""
    if node.split("-")[0] == "sender":
        return "sender"
    return DRIVER if node[:1] == "w" and node[1:].isdigit() else node


class Excuses:
    """Why nodes of one run may have ended by themselves."""

    def __init__(self) -> None:
        self._used: set[tuple[str, str]] = set()

    def why(
        self,
        node: str,
        status: int,
        injected: Sequence[Injected],
        is_fenced: bool = False,
        words: str = "",
    ) -> str:
        """Why a node may have ended by itself with this status; empty when it may not.

        Args:
            is_fenced: see the function of this name.
            words: the last that it said.

        What a fault has done to a node itself it has done once: where that one ends again after it
        was started again, something else is wrong.
        """
        role = role_of(node)
        for contract in CONTRACTS:
            if contract.role != role or contract.status not in (None, status):
                continue
            if contract.fenced and not is_fenced:
                continue
            if contract.but is not None and contract.but.match(words):
                continue
            for one in injected:
                use = one.fault.id, node
                here = not contract.own or (role_of(one.node) == role and use not in self._used)
                if here and contract.under(one.fault):
                    if contract.own:
                        self._used.add(use)
                    return contract.why
        return ""


def is_fenced(events: Iterable[TraceEvent], node: str, incarnation: int) -> bool:
    """Whether another start of a node than this one has taken the newest epoch; or has written a
    note of Spark's since this one began, for Spark ends who finds that."""
    newest, has_begun = (0, incarnation), False
    for event in events:
        if event.node != node:
            continue
        has_begun = has_begun or event.incarnation == incarnation
        id, own = StepId.parse(event.step), event.incarnation == incarnation
        if event.phase != "after":
            continue
        if has_begun and not own and id.is_noted_by_spark:
            return True
        if id.shape == "epoch=N/take" and event.detail.get("taken"):
            newest = max(newest, (id.epoch or 0, event.incarnation))
    return newest[1] != incarnation


def last_beside_another(
    events: Iterable[TraceEvent], node: str, incarnation: int
) -> TraceEvent | None:
    """The last that one start of a node has told, if another one, which it has replaced, went on
    beside it: they write into one log, whose end is of either. None where none did."""
    own, beside = None, False
    for event in events:
        if event.node != node or event.step.startswith((FAULT, NODE_START)):
            continue
        if event.incarnation == incarnation:
            own = event
        else:
            beside = beside or own is not None
    return own if beside else None
