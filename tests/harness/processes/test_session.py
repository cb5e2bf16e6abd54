from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bettong.harness.processes import session as sessions
from bettong.harness.processes import watchdog
from bettong.harness.processes.session import ProcessError, ProcessSession, suspend

# A leader with a child that made itself a process group, as pyspark's daemon does.
FAMILY = """
import os, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    print(os.getpid(), flush=True)
    time.sleep(600)
time.sleep(600)
"""

# Eight threads that copy, without Python's lock, into a file that others can read.
BUSY = """
import mmap, sys, threading, zlib
from pathlib import Path
path = Path(sys.argv[1])
path.write_bytes(bytes(8 * 4096))
shared = mmap.mmap(path.open("r+b").fileno(), 0)
def count(place):
    value = 0
    while True:
        value = zlib.crc32(bytes(100_000), value)
        shared[place:place + 4] = value.to_bytes(4, "big")
for number in range(8):
    threading.Thread(target=count, args=(number * 4096,)).start()
print("on", flush=True)
"""

PARENT = """
import os, sys
from pathlib import Path
from bettong.harness.processes.session import ProcessSession, guard_folder
guard_folder(Path(sys.argv[2]))
s = ProcessSession.start([sys.executable, "-c", sys.argv[1]], env=dict(os.environ),
                         log=Path(sys.argv[2]) / "log")
print(s.pid, flush=True)
sys.stdin.read()
"""


def wait_gone(pid: int) -> None:
    try:
        process = psutil.Process(pid)
        if process.status() != "zombie":
            process.wait(60)
    except psutil.NoSuchProcess:
        pass


def wait_text(path: Path) -> str:
    while not (path.exists() and path.read_text().endswith("\n")):
        os.sched_yield()
    return path.read_text()


def test_a_kill_reaches_every_process_of_the_session(tmp_path: Path) -> None:
    session = ProcessSession.start(
        [sys.executable, "-c", FAMILY], env=dict(os.environ), log=tmp_path / "log"
    )
    child = int(wait_text(tmp_path / "log"))
    ended = session.kill()
    assert (ended.status, ended.processes) == (-signal.SIGKILL, 2)
    wait_gone(child)


def test_killing_what_has_ended_already_tells_its_own_status(tmp_path: Path) -> None:
    session = ProcessSession.start(
        [sys.executable, "-c", "raise SystemExit(3)"], env={}, log=tmp_path / "log"
    )
    assert session.wait(60) == 3
    assert session.kill().status == 3


STOPPED = """
import signal, sys
def end(*_):
    print("done", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[1:] else end)
print("on", flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    ("ignores", "status", "said", "killed"),
    [((), 0, "on\ndone\n", 0), (("it",), -signal.SIGKILL, "on\n", 1)],
)
def test_a_session_is_asked_to_end_and_killed_if_it_does_not(
    tmp_path: Path, ignores: Sequence[str], status: int, said: str, killed: int
) -> None:
    session = ProcessSession.start(
        [sys.executable, "-c", STOPPED, *ignores], env=dict(os.environ), log=tmp_path / "log"
    )
    wait_text(tmp_path / "log")
    ended = session.stop(0.1 if ignores else 60.0)
    assert (ended.status, ended.processes) == (status, killed)
    assert (tmp_path / "log").read_text() == said


def test_what_does_not_exist_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="cannot start /no/such"):
        ProcessSession.start(["/no/such"], env={}, log=tmp_path / "log")


def test_when_the_parent_is_killed_its_sessions_and_folders_go_too(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, FAMILY, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    leader = int(parent.stdout.readline())
    child = int(wait_text(folder / "log"))
    guards = [p for p in psutil.Process(parent.pid).children() if p.pid != leader]
    parent.kill()
    parent.wait()
    wait_gone(leader)
    wait_gone(child)
    for guard in guards:
        wait_gone(guard.pid)
    assert not folder.exists()


@pytest.mark.parametrize("anothers", [True, False])
def test_the_watchdog_ends_the_sessions_that_it_was_told_of(tmp_path: Path, anothers: bool) -> None:
    """Numbers are given again: what has a number of a session that ended may be a stranger."""
    session = ProcessSession.start(
        [sys.executable, "-c", FAMILY], env=dict(os.environ), log=tmp_path / "log"
    )
    wait_text(tmp_path / "log")
    start = "1" if anothers else watchdog.started(session.pid)
    guard = [sys.executable, "-I", "-S", watchdog.__file__]
    subprocess.run(guard, input=f"+{session.pid} {start}\n", text=True, check=True)
    if not anothers:
        wait_gone(session.pid)
    assert (session.poll() is None) == anothers
    session.kill()


def test_the_watchdog_waits_for_nothing_that_another_session_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is killed belongs to its session until its parent has asked for it, or has ended too."""
    parent = subprocess.Popen(
        [sys.executable, "-c", NEVER_ASKS], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    sessions = {pid: watchdog.started(pid) for pid in (child, parent.pid)}
    never_up = SimpleNamespace(monotonic=lambda: 0.0, sleep=time.sleep)
    monkeypatch.setattr(watchdog, "time", never_up)
    ending = threading.Thread(target=watchdog.end, args=(sessions,))
    ending.start()
    parent.wait()
    ending.join()
    wait_gone(child)


def test_the_end_of_what_has_ended_is_not_that_of_whoever_has_its_number_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", FAMILY], start_new_session=True)

    class HasEnded:
        pid = stranger.pid
        stdin = stdout = None

        def poll(self) -> int | None:
            return 0

        def wait(self, timeout: float | None = None) -> int:
            return 0

    monkeypatch.setattr(sessions, "started", lambda pid: "1")
    assert ProcessSession(HasEnded()).kill().processes == 0
    assert stranger.poll() is None
    monkeypatch.undo()
    ProcessSession(stranger).kill()


NEVER_ASKS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""

ASKED = """
import sys
from bettong.harness.queries.run.environment import spark_environments
with spark_environments(lambda event: None):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_check_had_put_aside_goes_too(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ASKED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as asked:
        assert asked.stdout is not None
        assert asked.stdout.readline() == b"ready\n"
        (guard,) = psutil.Process(asked.pid).children()
        assert len(list(tmp_path.iterdir())) == 1
        asked.kill()
        wait_gone(guard.pid)
    assert list(tmp_path.iterdir()) == []


def test_a_suspended_process_does_nothing_more_in_any_thread(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    session = ProcessSession.start(
        [sys.executable, "-c", BUSY, str(shared)], env=dict(os.environ), log=tmp_path / "log"
    )
    wait_text(tmp_path / "log")
    for _ in range(20):
        suspend([session.pid])
        seen = shared.read_bytes()
        for _ in range(1_000):
            os.sched_yield()
        assert shared.read_bytes() == seen
        session.resume()
    session.kill()
