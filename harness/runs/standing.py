"""Where each node stands when a run does not end: what it waits for, what it said last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bettong.harness.cluster.cluster import Cluster
from bettong.harness.cluster.nodes import last_words
from bettong.harness.conductor.run_control import RunControl


def standing(cluster: Cluster, control: RunControl) -> Mapping[str, Mapping[str, Any]]:
    """Of each node of a run: whether it runs, the steps that it has begun and not ended, the last
    step that it has told of, the last words in its log. JSON values."""
    waiting, last = control.waiting(), control.last_steps()
    found: dict[str, Mapping[str, Any]] = {}
    for name, node in cluster.nodes.items():
        if name in cluster.lasting:
            continue
        status = node.poll()
        state = "running" if status is None else f"ended with status {status}"
        found[name] = {
            "state": "standing still" if name in cluster.paused else state,
            "waits_for": waiting.get(name, []),
            "last_step": last.get(name),
            "last_words": last_words(node.log),
        }
    return found
