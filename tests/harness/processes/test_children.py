from __future__ import annotations

import os
import subprocess
import sys
import threading

import psutil
import pytest

from bettong.harness.processes.children import children_of

WAITS = [sys.executable, "-c", "input()"]


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(WAITS, stdin=subprocess.PIPE)


def test_children_of_every_thread_are_found_as_long_as_they_run() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(started()))
    thread.start()
    thread.join()
    mine, others = started(), found[0]
    listed = {p.pid for p in children_of(os.getpid())}
    assert {mine.pid, others.pid} <= listed == {p.pid for p in psutil.Process().children()}
    for process in (mine, others):
        process.communicate(b"\n")
    assert {mine.pid, others.pid}.isdisjoint({p.pid for p in children_of(os.getpid())})


def test_grandchildren_are_none() -> None:
    code = f"import subprocess; subprocess.run({WAITS!r}, stdin=0)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    while not children_of(parent.pid):
        assert parent.poll() is None
    (grandchild,) = children_of(parent.pid)
    assert grandchild.pid not in {p.pid for p in children_of(os.getpid())}
    parent.communicate(b"\n")


def test_who_has_ended_has_none() -> None:
    ended = started()
    ended.communicate(b"\n")
    with pytest.raises(psutil.NoSuchProcess):
        children_of(ended.pid)
