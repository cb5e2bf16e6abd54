"""What is asked of a live service on any runner."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from live_feed import Feed, gateway, shown, start

MESSAGES = 100
RATE = 20
LATEST_S = 2.0
PATIENCE_S = 1000.0


def until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something is so; a process that ends before is an error."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing comes"
        time.sleep(0.02)


def ended(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """End a run by a signal; what it printed. A SIGINT goes to all its processes, as Ctrl-C in a
    terminal does."""
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, (process.returncode, out, err)
    assert f"{number.name}: the run ends after the batch at hand" in err
    return out


def check_goes_on(folder: Path, runner: str) -> None:
    """With default options every message of a feed shows though no batch is ever full and another
    stream is silent; SIGTERM and SIGINT end the run with exit code 0, and the next start goes on
    where it ended."""
    with gateway(folder / "gateway") as where:
        feed = Feed(where, folder / "acked")
        try:
            first = start(folder, where, runner)
            for sent in (1, 4, 5):
                feed.send(sent - len(feed.sent))
                until(lambda: len(shown(folder)) == sent, first)  # noqa: B023 - called in the loop
            assert "SIGTERM ended the run, the next start goes on there" in ended(
                first, signal.SIGTERM
            )
            feed.send(3)
            second = start(folder, where, runner)
            until(lambda: len(shown(folder)) == 8, second)
            ended(second, signal.SIGINT)
        finally:
            feed.close()
    expect_sums(folder, 8)


def check_in_time(folder: Path, runner: str) -> None:
    """With default options each output of a feed of 20 messages a second, beside a stream that is
    silent, shows within 2 s of its sending, once a first one has shown that the run has begun."""
    with gateway(folder / "gateway") as where:
        feed = Feed(where, folder / "acked")
        try:
            run = start(folder, where, runner)
            feed.send(1)
            until(lambda: len(shown(folder)) == 1, run)
            feed.send(MESSAGES, RATE)
            until(lambda: len(shown(folder)) == 1 + MESSAGES, run)
            ended(run, signal.SIGTERM)
        finally:
            feed.close()
    expect_sums(folder, 1 + MESSAGES)
    seen = shown(folder)
    waited = sorted(seen[f"amounts/{n}"][1] - feed.sent[n] for n in range(1, 1 + MESSAGES))
    assert waited[-1] <= LATEST_S, waited[-5:]


def expect_sums(folder: Path, count: int) -> None:
    """Each of so many messages has given its sum, once."""
    assert {i: data for i, (data, _) in shown(folder).items()} == {
        f"amounts/{n}": f"k {n + 1}" for n in range(count)
    }
