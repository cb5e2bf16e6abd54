"""Hypothesis strategies for histories, streams, applications and machines that are killed."""

from bettong.harness.strategies.data import (
    PlantedHistory,
    fault_schedules,
    faults,
    interleavings,
    keyed_streams,
    keys,
    messages,
    numbers,
    pipelines,
    planted_histories,
    points,
)

__all__ = [
    "PlantedHistory",
    "fault_schedules",
    "faults",
    "interleavings",
    "keyed_streams",
    "keys",
    "messages",
    "numbers",
    "pipelines",
    "planted_histories",
    "points",
]
