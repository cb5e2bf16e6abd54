"""Gateway and sender as processes, killed at each of their steps."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bettong.engine.ingest.acked import read_acked
from bettong.engine.ingest.journal import Journal

GATEWAY, SENDER = "bettong.engine.ingest.gateway", "bettong.engine.ingest.sender"
PHASES = ("before", "after")
MESSAGES = [b"message %d" % n for n in range(6)]
STEPS = [
    f"{name}/lines/{last}"
    for last in (3, "end")
    for name in ("sender.send", "gateway.append", "gateway.ack", "sender.forget")
]


def kept(directory: Path) -> tuple[list[bytes], bool]:
    journal = Journal(directory / "streams" / "lines", "lines")
    messages = [m for piece in journal.read(0, journal.end) for m in piece.messages.payloads()]
    journal.close()
    return messages, journal.ended


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_loses_and_doubles_nothing(
    start: Any, killer: Any, tmp_path: Path, step: str, phase: str
) -> None:
    source = tmp_path / "input.txt"
    source.write_bytes(b"\n".join(MESSAGES) + b"\n")
    directory = tmp_path / "gateway"
    watched = {"conductor": killer.address}
    killer.kill_at = (step, phase)
    gateway = start(
        GATEWAY, "--listen", "127.0.0.1:0", "--dir", directory, node="gateway", **watched
    )
    listen = ("--listen", gateway.address, "--dir", directory)
    send = (
        *("--gateway", gateway.address, "--stream", "lines", "--input", source),
        *("--frame", 2, "--acked", tmp_path / "acked", "--outcome", tmp_path / "outcome"),
    )
    sender = start(SENDER, *send, node="sender", **watched)
    assert killer.killed.wait(60)
    if step.startswith("gateway"):
        assert gateway.wait() == -9
        gateway = start(GATEWAY, *listen, node="gateway", **watched)
    else:
        assert sender.wait() == -9
        upto, ended = read_acked(tmp_path / "acked", "lines")
        assert kept_while_running(directory) >= (upto, ended)
        sender = start(SENDER, *send, node="sender", **watched)
    assert sender.wait(60) == 0
    assert json.loads((tmp_path / "outcome").read_text()) == {"code": 0, "error": "", "acked": 6}
    assert read_acked(tmp_path / "acked", "lines") == (6, True)
    gateway.kill_and_wait()
    assert kept(directory) == (MESSAGES, True)


def kept_while_running(directory: Path) -> tuple[int, bool]:
    data = b"".join(path.read_bytes() for path in directory.rglob("segment-*.log"))
    return sum(message in data for message in MESSAGES), True


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("step", ["gateway.append/lines/3", "gateway.append/lines/end"])
def test_a_full_disk_loses_and_doubles_nothing(
    start: Any, killer: Any, tmp_path: Path, step: str, phase: str
) -> None:
    source = tmp_path / "input.txt"
    source.write_bytes(b"\n".join(MESSAGES) + b"\n")
    killer.fail_at = (step, phase)
    gateway = start(
        *(GATEWAY, "--listen", "127.0.0.1:0", "--dir", tmp_path / "gateway"),
        node="gateway",
        conductor=killer.address,
    )
    sender = start(
        *(SENDER, "--gateway", gateway.address, "--stream", "lines", "--input", source),
        node="sender",
        conductor=killer.address,
    )
    assert sender.wait(60) == 0
    assert killer.fail_at is None, "it has happened"
    gateway.kill_and_wait()
    assert kept(tmp_path / "gateway") == (MESSAGES, True)


def test_two_clean_runs_take_the_same_steps(start: Any, killer: Any, tmp_path: Path) -> None:
    source = tmp_path / "input.txt"
    source.write_bytes(b"\n".join(MESSAGES) + b"\n")
    traces = []
    for run in range(2):
        killer.events.clear()
        gateway = start(
            *(GATEWAY, "--listen", "127.0.0.1:0", "--dir", tmp_path / f"gateway{run}"),
            node="gateway",
            conductor=killer.address,
        )
        sender = start(
            *(SENDER, "--gateway", gateway.address, "--stream", "lines", "--input", source),
            node="sender",
            conductor=killer.address,
        )
        assert sender.wait(60) == 0
        done = [event for event in killer.events if event["phase"] == "after"]
        traces.append(sorted((e["step"], e["node"], e.get("causes", [])) for e in done))
    assert traces[0] == traces[1]
    started_created_connected = 3
    assert len(traces[0]) == started_created_connected + 4 * (len(MESSAGES) + 1)


def test_a_sender_sees_that_the_gateway_has_lost_what_it_acked(
    start: Any, killer: Any, tmp_path: Path
) -> None:
    source = tmp_path / "input.txt"
    source.write_bytes(b"\n".join(MESSAGES) + b"\n")
    killer.kill_at = ("gateway.append/lines/3", "before")
    gateway = start(
        *(GATEWAY, "--listen", "127.0.0.1:0", "--dir", tmp_path / "first"),
        node="gateway",
        conductor=killer.address,
    )
    sender = start(
        *(SENDER, "--gateway", gateway.address, "--stream", "lines", "--input", source),
        *("--outcome", tmp_path / "outcome"),
        node="sender",
    )
    assert killer.killed.wait(60)
    gateway.wait()
    start(GATEWAY, "--listen", gateway.address, "--dir", tmp_path / "second")
    assert sender.wait(60) == 1
    outcome = json.loads((tmp_path / "outcome").read_text())
    assert outcome["acked"] == 3
    assert "had acknowledged all up to lines/3, and now wants lines/0" in outcome["error"]


@pytest.mark.parametrize("what", ["damage", "in use", "open to all", "class"])
def test_a_gateway_that_cannot_start_says_why(start: Any, tmp_path: Path, what: str) -> None:
    directory = tmp_path / "gateway"
    first = start(GATEWAY, "--listen", "127.0.0.1:0", "--dir", directory)
    arguments = ["--listen", "127.0.0.1:0", "--dir", str(directory)]
    if what == "damage":
        first.kill_and_wait()
        home = directory / "streams" / "lines"
        home.mkdir(parents=True)
        (home / "segment-00000001.log").write_bytes(b"nonsense")
        why = "segment-00000001.log is cut short at byte 8"
    elif what == "in use":
        why = "belongs to another process"
    elif what == "open to all":
        arguments = ["--listen", "0.0.0.0:0", "--dir", str(tmp_path / "other")]
        why = "give --tls-cert FILE --tls-key FILE"
    else:
        arguments = [*arguments[:3], str(tmp_path / "other"), "--class", "json:loads"]
        why = "json:loads is not derived from Gateway"
    done = subprocess.run(
        [sys.executable, "-m", GATEWAY, *arguments], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1, "one line, no traceback"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_kills_in_one_run(start: Any, killer: Any, tmp_path: Path, seed: int) -> None:
    """Gateway and sender killed at steps drawn at random, several frames on their way."""
    draw = random.Random(seed)
    frames, size = 60, 20
    messages = [b"message %d " % n + b"." * draw.randrange(200) for n in range(frames * size)]
    source = tmp_path / "input.txt"
    source.write_bytes(b"\n".join(messages) + b"\n")
    directory = tmp_path / "gateway"
    names = ("sender.send", "gateway.append", "gateway.ack", "sender.forget")
    places = sorted(draw.sample(range(0, frames, 6), 8))  # further apart than the window
    lasts = [(place + 1) * size - 1 for place in places]
    plan = [(f"{draw.choice(names)}/lines/{last}", draw.choice(PHASES)) for last in lasts]
    options = {"conductor": killer.address}
    limits = ("--segment-bytes", 20_000)

    def serve(address: object) -> Any:
        arguments = ("--listen", address, "--dir", directory, *limits)
        return start(GATEWAY, *arguments, node="gateway", **options)

    def send() -> Any:
        arguments = ("--gateway", gateway.address, "--stream", "lines", "--input", source)
        pace = ("--frame", size, "--window", 3, "--acked", tmp_path / "acked")
        return start(SENDER, *arguments, *pace, node="sender", **options)

    killer.kill_at = plan[0]
    gateway = serve("127.0.0.1:0")
    sender = send()
    for step, following in zip(plan, [*plan[1:], None], strict=True):
        assert killer.killed.wait(60), f"{step} never came"
        killer.killed.clear()
        (gateway if step[0].startswith("gateway") else sender).wait()
        killer.kill_at = following
        if step[0].startswith("gateway"):
            gateway = serve(gateway.address)
        else:
            sender = send()
    assert sender.wait(60) == 0
    gateway.kill_and_wait()
    assert kept(directory) == (messages, True)
