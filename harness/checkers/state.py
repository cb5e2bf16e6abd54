"""StateDivergence, Stuck and Died: what a run holds, and where it stands, when it is over."""

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


def stuck(
    where: str,
    waiting: Sequence[str] = (),
    *,
    expected: str | None = None,
    nodes: Mapping[str, Any] | None = None,
) -> Anomaly:
    """A run that never finished.

    Args:
        where: the last step that was taken or the one that is waited for, or why nothing follows.
        waiting: ids of messages that were accepted but are not visible.
        expected: what would have been the end.
        nodes: of each node what it was waiting for and what it said last, JSON values.
    """
    seen = where if not nodes else {"why": where, "nodes": dict(nodes)}
    note = where if nodes else None
    return Anomaly(
        "Stuck", tuple(waiting), expected=expected or "every message visible", seen=seen, note=note
    )


def died(node: str, status: int, words: str, step: str | None = None) -> Anomaly:
    """A process that ended by itself, and was started again.

    Args:
        status: its exit status; a negative one is the signal that ended it.
        words: the last that it said.
        step: the last step that it took, where that is known.
    """
    return Anomaly(
        "Died",
        expected=f"the {node} goes on until its work is done",
        seen={"node": node, "status": status, "last_words": words, "last_step": step},
        note=f"the {node} ended with status {status}: {words}",
    )
