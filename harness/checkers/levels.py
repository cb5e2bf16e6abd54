"""From anomalies to a level and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bettong.harness.checkers.kinds import kind_of
from bettong.lineage.results import Anomaly, AnomalyKind, Guarantee, Ordering, Verdict

Order = Literal["per-key", "total", "none"]

_IMPLIES: Mapping[Guarantee, frozenset[Guarantee]] = {
    "effectively-once": frozenset({"effectively-once", "at-least-once", "at-most-once", "none"}),
    "at-least-once": frozenset({"at-least-once", "none"}),
    "at-most-once": frozenset({"at-most-once", "none"}),
    "none": frozenset({"none"}),
}
_DO_NOT_LAST = frozenset({"Died", "Leak"})
"""What no output suffers from, until nobody starts a process again or the disk is full."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a checker says of one pair of histories.

    Attributes:
        verdict: ``invalid`` when less was found than was asked for; ``unknown`` when the
            histories cannot be judged.
        guarantee: the level that the anomalies leave.
        ordering: ``per-key`` when an order was checked and holds.
        anomalies: the witnesses.
        counts: how many of each kind there are, also those without a witness here.
        reason: one sentence.
        malformed: what made judging impossible, each naming its record.
    """

    verdict: Verdict
    guarantee: Guarantee
    ordering: Ordering
    anomalies: tuple[Anomaly, ...] = ()
    counts: Mapping[AnomalyKind, int] = field(default_factory=dict)
    reason: str = ""
    malformed: tuple[str, ...] = ()


def guarantee_of(kinds: set[AnomalyKind]) -> Guarantee:
    """The level that holds although these anomalies were seen.

    Each kind leaves one (:mod:`~bettong.harness.checkers.kinds`); a loss and a duplicate together
    leave none. A batch of which a reader saw a part is in the end complete, so Torn alone leaves
    at-least-once. Stuck counts as a loss. Died says nothing of outputs: where a supervisor started
    the process again, they have a level of their own.
    """
    found = [kind_of(name) for name in kinds]
    left = {kind.leaves for kind in found}
    if "none" in left:
        return "none"
    if "at-most-once" in left:
        repeated = any(k.leaves == "at-least-once" and not k.passing for k in found)
        return "none" if repeated else "at-most-once"
    return "at-least-once" if "at-least-once" in left else "effectively-once"


def satisfies(found: Guarantee, asked: Guarantee) -> bool:
    """Whether a level is the one asked for or a stronger one."""
    return asked in _IMPLIES[found]


def judge(
    anomalies: Sequence[Anomaly],
    *,
    expect: Guarantee = "effectively-once",
    order: Order = "per-key",
    counts: Mapping[AnomalyKind, int] | None = None,
) -> Judgement:
    """The verdict on anomalies that were found.

    Args:
        anomalies: all of them, or a sample when ``counts`` is given.
        expect: the level asked for. Torn is a violation of effectively-once alone, Died and Leak of
            every level but ``none``.
        order: the order that was checked; with ``none`` a Reorder is not counted against it.
        counts: the true number of each kind.
    """
    numbers: Mapping[AnomalyKind, int] = (
        Counter(a.kind for a in anomalies) if counts is None else counts
    )
    kinds = {kind for kind, number in numbers.items() if number}
    guarantee = guarantee_of(kinds)
    in_order = "Reorder" not in kinds
    lasts = kinds.isdisjoint(_DO_NOT_LAST) or expect == "none"
    held = satisfies(guarantee, expect) and (in_order or order == "none") and lasts
    reported = ", ".join(f"{numbers[kind]:,} {kind}" for kind in sorted(kinds)) or "no anomaly"
    return Judgement(
        verdict="valid" if held else "invalid",
        guarantee=guarantee,
        ordering="per-key" if in_order and order != "none" else "none",
        anomalies=tuple(anomalies),
        counts=dict(numbers),
        reason=f"{reported}: {guarantee}, {expect} was asked for"
        + ("" if in_order or order == "none" else f", in order {order}"),
    )


def undecided(reason: str, malformed: Sequence[str] = ()) -> Judgement:
    """A verdict of ``unknown``."""
    return Judgement("unknown", "none", "none", reason=reason, malformed=tuple(malformed))
