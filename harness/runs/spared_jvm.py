"""What it takes to believe a run in which a crash or power cut of the driver spared its JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.checkers import undecided
from bettong.harness.runs.record import RunRecord


def confirmed(spared: RunRecord, killed: RunRecord) -> RunRecord:
    """What is told of a schedule under which a run was not good whose driver's JVM was spared.

    Args:
        killed: the same schedule, with the whole node killed. What it shows is told, unless it is
            no violation where the other one was: nothing is known then.
    """
    if spared.outcome != "violation" or killed.outcome == "violation":
        return killed
    kinds = ", ".join(sorted({anomaly.kind for anomaly in spared.anomalies}))
    note = (
        f"{kinds} when the driver's JVM was spared, and {killed.outcome} when the whole node was "
        "killed: which of both is the system's own is not known"
    )
    return replace(killed, outcome="unknown", judgement=undecided(note), note=note)


def spared_jvms(crashed: Sequence[bool]) -> tuple[str, ...]:
    """What a verdict takes for granted of runs in which the driver was crashed, given of each
    whether its JVM was spared."""
    if not any(crashed):
        return ()
    return (
        f"Spark's own JVM outlived crashes and power cuts of the driver in {sum(crashed)} of "
        f"{len(crashed)} runs with any: every Python process of the node got SIGKILL, the JVM did "
        "nothing durable from that moment on and made a new Spark context for the next driver; "
        "amid a file operation of the JVM it is killed as well; a violation is told only when it "
        "comes with the whole node killed too",
    )
