"""A watchdog process that outlives Bettong by a moment: when its standard input ends, it kills
every session it was told of and removes every folder, so that even SIGKILL of Bettong leaves
nothing behind. Needs nothing but the standard library; run as a file, not imported by its parent.

Lines on standard input: ``+SID START`` watch a session whose first process has started then, as
:func:`started` tells, ``-SID`` forget it, ``>PATH`` and ``<PATH`` likewise for a folder. Numbers of
processes are given again: a session whose first process has started at another time is another's.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time


def started(pid: int) -> str:
    """When a process has started, by its machine's own count; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        if os.path.isdir("/proc"):  # noqa: PTH112
            return ""
    told = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "-".join(told.stdout.split())


def is_anothers(session: int, start: str) -> bool:
    """Whether the session with this number is not the one whose first process has started then."""
    return started(session) not in ("", start)


def members(session: int) -> list[int]:
    """Process ids of a session, zombies included."""
    if os.path.isdir("/proc"):  # noqa: PTH112 - the less that is imported here, the better
        names = os.listdir("/proc")  # noqa: PTH208
    else:
        names = subprocess.run(
            ["ps", "-axo", "pid="], capture_output=True, text=True, check=False
        ).stdout.split()
    found = []
    for name in names:
        if name.isdigit():
            try:
                if os.getsid(int(name)) == session:
                    found.append(int(name))
            except OSError:
                continue
    return found


def end(sessions: dict[int, str]) -> None:
    """SIGKILL every process of these sessions, until none is left or two seconds have passed.

    All at once: what has ended stays in a session for as long as its parent, in another one, lives.
    """
    left = dict(sessions)
    deadline = time.monotonic() + 2
    while left and time.monotonic() < deadline:
        for session, start in list(left.items()):
            pids = [] if is_anothers(session, start) else members(session)
            if not pids:
                del left[session]
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
        time.sleep(0.02)


def main() -> None:
    """Watch until standard input ends, then clear up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sessions: dict[int, str] = {}
    folders: set[str] = set()
    for line in sys.stdin:
        sign, rest = line[0], line[1:].rstrip("\n")
        if sign == "+":
            session, _, start = rest.partition(" ")
            sessions[int(session)] = start
        elif sign == "-":
            sessions.pop(int(rest), None)
        elif sign == ">":
            folders.add(rest)
        elif sign == "<":
            folders.discard(rest)
    end(sessions)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
