"""What is asked of a live service on any runner."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from live_feed import Feed, gateway, shown, start

MESSAGES = 60
CAUGHT_UP = 20
LATEST_S = 2.0
PATIENCE_S = 240.0


def until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something is so; a process that ends before is an error."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing comes"
        time.sleep(0.02)


def ended(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """End a run by a signal; what it printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, (process.returncode, out, err)
    assert f"{number.name}: the run ends after the batch at hand" in err
    return out


def check(folder: Path, runner: str) -> None:
    """With default options each output of a feed of 20 messages a second, beside a stream that is
    silent, shows within 2 s of its sending, once the run has started; SIGTERM and SIGINT end the
    run with exit code 0, and the next start goes on where it ended."""
    with gateway(folder / "gateway") as where:
        feed = Feed(where, 20, folder / "acked")
        try:
            first = start(folder, where, runner)
            # what came while it started is over when it has caught up
            until(lambda: len(shown(folder)) > max(0, len(feed.sent) - CAUGHT_UP), first)
            begun = len(feed.sent)
            until(lambda: len(shown(folder)) >= begun + MESSAGES, first)
            out = ended(first, signal.SIGTERM)
            assert "SIGTERM ended the run, the next start goes on there" in out
            seen = shown(folder)
            late = [
                at - feed.sent[n]
                for n, (_, at) in enumerate(seen[f"amounts/{n}"] for n in range(len(seen)))
                if n >= begun
            ]
            assert max(late) <= LATEST_S, sorted(late)[-5:]
            second = start(folder, where, runner)
            until(lambda: len(shown(folder)) > len(seen) + 20, second)
            ended(second, signal.SIGINT)
        finally:
            feed.close()
    rows = shown(folder)
    assert {i: data for i, (data, _) in rows.items()} == {
        f"amounts/{n}": f"k {n + 1}" for n in range(len(rows))
    }
