"""Consistency of what a reader sees over time: totals that never go back, windows that fire as
their policy says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from bettong.harness.checkers.records import Record, same
from bettong.lineage.results import Anomaly

Firing = Literal["once", "update"]


def check_running_totals(
    observed: Sequence[Record], total: Callable[[Any], float]
) -> tuple[Anomaly, ...]:
    """One StateDivergence for each step back of a key's running total.

    Args:
        observed: in the order seen.
        total: the running total in a record's value.
    """
    last: dict[str | None, Record] = {}
    found = []
    for record in observed:
        before = last.get(record.key)
        # Not-a-number is no total either: nothing is less than it, and it is not at least anything.
        if before is not None and not total(record.value) >= total(before.value):
            found.append(
                Anomaly(
                    "StateDivergence",
                    (str(before.id), str(record.id)),
                    record.key,
                    expected=f"at least {total(before.value)}",
                    seen=total(record.value),
                    note="a running total went back",
                )
            )
        last[record.key] = record
    return tuple(found)


def check_windows(
    expected: Mapping[tuple[str, Hashable], Any],
    fired: Sequence[tuple[str, Hashable, Any]],
    policy: Firing = "once",
) -> tuple[Anomaly, ...]:
    """Window firings against the windows that should have fired.

    Args:
        expected: the final value of each (key, window).
        fired: each firing as (key, window, value), in the order seen.
        policy: ``once``: each window fires one time. ``update``: a late message may fire it
            again with another value, and the last one counts.
    """
    values: dict[tuple[str, Hashable], list[Any]] = defaultdict(list)
    for key, window, value in fired:
        values[key, window].append(value)
    found = []
    for (key, window), right in expected.items():
        seen = values.get((key, window))
        if not seen:
            found.append(_window("Loss", key, window, right, None, "never fired"))
            continue
        repeated = policy == "once" or any(same(a, b) for a, b in pairwise(seen))
        if len(seen) > 1 and repeated:
            found.append(_window("Duplicate", key, window, right, seen, f"fired {len(seen)} times"))
        if not same(seen[-1], right):
            found.append(
                _window("Corrupt", key, window, right, seen[-1], "fired with other content")
            )
    for (key, window), seen in values.items():
        if (key, window) not in expected:
            found.append(_window("Phantom", key, window, None, seen[-1], "should not have fired"))
    return tuple(found)


def _window(
    kind: Literal["Loss", "Duplicate", "Corrupt", "Phantom"],
    key: str,
    window: Hashable,
    expected: Any,
    seen: Any,
    what: str,
) -> Anomaly:
    return Anomaly(kind, (f"{key}@{window}",), key, expected, seen, f"window {window} {what}")
