"""Which processes a process has started."""

from __future__ import annotations

from pathlib import Path

import psutil

_PROC = Path("/proc")


def children_of(pid: int) -> list[psutil.Process]:
    """The processes whose parent this one is and that have not ended.

    Linux is asked for them alone: psutil looks at every process of the machine, which takes ten
    times as long where some hundred run.

    Raises psutil.NoSuchProcess when there is no such process.
    """
    threads = _PROC / str(pid) / "task"
    if not (threads / str(pid) / "children").exists():
        return psutil.Process(pid).children()
    try:
        listed = [child for thread in threads.iterdir() for child in _listed(thread)]
    except OSError as e:
        raise psutil.NoSuchProcess(pid) from e
    return [process for child in listed if (process := _running(child)) is not None]


def _listed(thread: Path) -> list[int]:
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        return []  # a thread that has ended has handed its children on


def _running(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
