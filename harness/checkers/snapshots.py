"""Torn: a reader saw a part of an atomic batch, shown by snapshots taken while it ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bettong.lineage.results import Anomaly


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ids of all messages that a reader saw at one time.

    Attributes:
        name: when that was, in words or logical time (``"before batch=3/sink.commit"``).
        ids: everything visible then.
    """

    name: str
    ids: frozenset[str]


def check_atomicity(
    batches: Mapping[str | int, Collection[str]], snapshots: Sequence[Snapshot]
) -> tuple[Anomaly, ...]:
    """One Torn for each batch that some snapshot shows in part.

    Args:
        batches: the messages that each batch makes visible together.
        snapshots: in the order in which they were taken.
    """
    found = []
    for batch, members in batches.items():
        ids = set(members)
        torn = [s for s in snapshots if 0 < len(ids & s.ids) < len(ids)]
        if not torn:
            continue
        first = torn[0]
        visible, missing = sorted(ids & first.ids), sorted(ids - first.ids)
        whole = any(ids <= s.ids for s in snapshots[snapshots.index(first) :])
        found.append(
            Anomaly(
                "Torn",
                (visible[0], missing[0]),
                expected=f"all or none of the {len(ids)} messages of batch {batch}",
                seen={
                    "snapshot": first.name,
                    "visible": len(visible),
                    "missing": len(missing),
                    "visible_ids": visible[:10],
                    "missing_ids": missing[:10],
                },
                note=f"batch {batch} in part in {len(torn)} snapshots, "
                + ("whole later" if whole else "never whole after"),
            )
        )
    return tuple(found)


def check_stays_visible(snapshots: Sequence[Snapshot]) -> tuple[Anomaly, ...]:
    """One Loss for each message that one snapshot shows and the next does not.

    For outputs that are only ever appended to.
    """
    return tuple(
        Anomaly(
            "Loss",
            (name,),
            expected=f"visible from {before.name} on",
            seen=f"gone at {after.name}",
            note="seen, then gone",
        )
        for before, after in pairwise(snapshots)
        for name in sorted(before.ids - after.ids)
    )
