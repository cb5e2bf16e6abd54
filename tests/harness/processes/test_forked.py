from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from bettong.engine.steps import Instrumentation
from bettong.harness.processes.clock_ahead import ENV_AHEAD
from bettong.harness.processes.fork_servers import ForkServers
from bettong.harness.processes.forked import Forked, ForkServerProcess
from bettong.lineage.errors import UsageError

MODULE = """
import atexit, json, os, signal, sys, time
if sys.argv[1] == "stay":
    print(json.dumps({"listening": os.environ["NAME"], "session": os.getsid(0)}), flush=True)
    time.sleep(600)
if sys.argv[1] == "tidy":
    atexit.register(print, "tidied up", file=sys.stderr)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(json.dumps({"listening": ""}), flush=True)
    signal.pause()
if sys.argv[1] == "day":
    print(int(time.time()), file=sys.stderr)
    sys.exit(0)
if sys.argv[1] == "hash":
    print(hash("a text"), file=sys.stderr)
    sys.exit(0)
print("said", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fork server")
    (folder / "forked_child.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("PYTHONPATH", str(folder), os.pathsep)
        yield folder


@pytest.fixture(scope="module")
def fork_server(home: Path) -> Iterator[ForkServerProcess]:
    with ForkServerProcess(home / "forks", ["json"]) as found:
        yield found


def test_the_exit_status_is_the_process_s_own(
    fork_server: ForkServerProcess, tmp_path: Path
) -> None:
    session = fork_server.start(["forked_child", "7"], env={}, log=tmp_path / "log")
    assert session.wait(60) == 7
    assert session.poll() == 7
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_forked_process_leads_a_session_and_is_killed_with_it(
    fork_server: ForkServerProcess, tmp_path: Path
) -> None:
    session = fork_server.start(
        ["forked_child", "stay"], env={"NAME": "x"}, log=tmp_path / "log", speaks=True
    )
    assert session.first_line(60) == b'{"listening": "x", "session": %d}\n' % session.pid
    assert session.poll() is None
    ended = session.kill()
    assert (ended.status, ended.processes) == (-signal.SIGKILL, 1)
    assert not psutil.pid_exists(ended.pid)


def test_a_forked_process_that_is_stopped_does_what_it_does_at_its_end(
    fork_server: ForkServerProcess, tmp_path: Path
) -> None:
    session = fork_server.start(["forked_child", "tidy"], env={}, log=tmp_path / "log", speaks=True)
    assert session.first_line(60)
    ended = session.stop(60)
    assert (ended.status, (tmp_path / "log").read_text()) == (0, "tidied up\n")


def test_a_forked_process_is_told_what_day_it_is(
    fork_server: ForkServerProcess, tmp_path: Path
) -> None:
    def told(ahead: int) -> int:
        log = tmp_path / str(ahead)
        session = fork_server.start(["forked_child", "day"], env={ENV_AHEAD: str(ahead)}, log=log)
        assert session.wait(60) == 0
        return int(log.read_text())

    later, now = told(86_400), told(0)
    assert 43_200 < later - now <= 86_400


def test_a_node_that_was_started_again_hashes_otherwise(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    hashes = []
    with ForkServers(home / "servers", ["json"]) as servers:
        for incarnation in (1, 2, 3, 3):
            env = Instrumentation("run", "driver", incarnation).to_env()
            log = tmp_path / f"{len(hashes)}"
            assert servers.start(["forked_child", "hash"], env=env, log=log).wait(60) == 0
            hashes.append(log.read_text())
    first, second, third, again = hashes
    assert first != second != third == again


def test_a_folder_with_too_long_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"too long a path.*107.*set TMPDIR") as refused:
        ForkServerProcess(tmp_path / ("x" * 120), ["json"])
    assert "\n" not in str(refused.value)


def test_a_fork_server_ends_with_its_parent(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "bettong.harness.processes.fork_server",
            str(tmp_path / "z"),
            "json",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline()
    process.stdin.close()
    assert process.wait(60) == 0
    assert not (tmp_path / "z").exists()


class _Slow(Forked):
    """Whoever reads the status first is held until told to go on."""

    reads: threading.Event
    go_on: threading.Event

    def _answer(self) -> dict[str, int]:
        if hasattr(self, "pid") and not self.reads.is_set():
            self.reads.set()
            assert self.go_on.wait(60)
        return super()._answer()


def test_one_thread_looks_while_another_one_takes_the_status() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b'{"pid": 7}\n')
    process = _Slow(ours, None)
    process.reads, process.go_on = threading.Event(), threading.Event()
    assert process.poll() is None
    theirs.sendall(b'{"status": 3}\n')
    with ThreadPoolExecutor(1) as threads, theirs:
        waiting = threads.submit(process.wait)
        assert process.reads.wait(60)
        assert process.poll() is None  # it is not known yet
        process.go_on.set()
        assert waiting.result(60) == 3
    assert process.poll() == 3
