"""StateDivergence and Stuck: what a run holds, and where it stands, when it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bettong.harness.checkers.records import same
from bettong.lineage.results import Anomaly


def check_state(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> tuple[Anomaly, ...]:
    """Final state entities by key, against those of the sequential interpreter.

    Entities are compared by ``==``; of two mappings the fields that differ are named.
    """
    found = []
    for key in sorted(expected.keys() | observed.keys()):
        if key not in observed:
            found.append(Anomaly("StateDivergence", (), key, expected[key], None, "missing"))
        elif key not in expected:
            found.append(Anomaly("StateDivergence", (), key, None, observed[key], "unexpected"))
        elif not same(expected[key], observed[key]):
            note = "differs" + _fields(expected[key], observed[key])
            found.append(Anomaly("StateDivergence", (), key, expected[key], observed[key], note))
    return tuple(found)


def _fields(a: Any, b: Any) -> str:
    if not isinstance(a, Mapping) or not isinstance(b, Mapping):
        return ""
    names = sorted(
        str(n) for n in a.keys() | b.keys() if n not in a or n not in b or not same(a[n], b[n])
    )
    return " in " + ", ".join(names[:10])


def stuck(where: str, waiting: Sequence[str] = (), *, expected: str | None = None) -> Anomaly:
    """A run that never finished.

    Args:
        where: the last step that was taken or the one that is waited for.
        waiting: ids of messages that were accepted but are not visible.
        expected: what would have been the end.
    """
    return Anomaly(
        "Stuck", tuple(waiting), expected=expected or "every message visible", seen=where
    )
