"""What the disk layer costs in production, where no step is recorded, beside the plain calls of the
operating system that it stands on."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bettong.engine import steps
from bettong.engine.storage.disk import OS_DISK
from bettong.lineage.results import environment

ROUNDS = 300
CALLS = 100
SYNCS = 4
RECORD = b"x" * 200


def _seconds(count: int, call: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count


def bench() -> dict[str, Any]:
    """The figures: of many short rounds the quickest, which nothing else has disturbed."""
    steps.install(steps.Instrumentation())
    own: dict[str, list[float]] = {"append": [], "append and sync": [], "rename": []}
    peer: dict[str, list[float]] = {name: [] for name in own}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = OS_DISK.append_to(folder / "own")
        fd = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def synced() -> None:
            file.write(RECORD)
            file.sync()

        def plainly_synced() -> None:
            os.write(fd, RECORD)
            os.fsync(fd)

        def rename(to: Callable[[Path, Path], object]) -> None:
            to(folder / "own", folder / "other")
            to(folder / "other", folder / "own")

        for _ in range(ROUNDS):
            peer["append"].append(_seconds(CALLS, lambda: os.write(fd, RECORD)))
            own["append"].append(_seconds(CALLS, lambda: file.write(RECORD)))
            peer["append and sync"].append(_seconds(SYNCS, plainly_synced))
            own["append and sync"].append(_seconds(SYNCS, synced))
            peer["rename"].append(_seconds(SYNCS, lambda: rename(Path.replace)))
            own["rename"].append(_seconds(SYNCS, lambda: rename(OS_DISK.rename)))
        file.close()
        os.close(fd)
    return {
        "name": "disk",
        "figures": {
            name: {
                "value": round(min(own[name]) * 1e6, 2),
                "unit": "us",
                "versus": "the plain calls",
                "ratio": round(min(own[name]) / min(peer[name]), 3),
            }
            for name in own
        },
        "environment": environment(),
    }
