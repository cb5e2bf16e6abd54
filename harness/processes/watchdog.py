"""A watchdog process that outlives Bettong by a moment: when its standard input ends, it kills
every session it was told of and removes every folder, so that even SIGKILL of Bettong leaves
nothing behind. Needs nothing but the standard library; run as a file, not imported by its parent.

Lines on standard input: ``+SID`` watch a session, ``-SID`` forget it, ``>PATH`` and ``<PATH``
likewise for a folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time


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


def end(session: int) -> None:
    """SIGKILL every process of a session, until none is left or two seconds have passed."""
    deadline = time.monotonic() + 2
    while pids := members(session):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)


def main() -> None:
    """Watch until standard input ends, then clear up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sessions: set[int] = set()
    folders: set[str] = set()
    for line in sys.stdin:
        sign, rest = line[0], line[1:].rstrip("\n")
        if sign == "+":
            sessions.add(int(rest))
        elif sign == "-":
            sessions.discard(int(rest))
        elif sign == ">":
            folders.add(rest)
        elif sign == "<":
            folders.discard(rest)
    for session in sessions:
        end(session)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
