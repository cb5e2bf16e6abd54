"""What a step costs: off, as in production, and with the conductor deciding.

``idle`` is a step with nothing installed, beside a plain function call; ``asked`` is a step that
the conductor is asked about twice, beside two bare exchanges of a line over TCP on the same
machine. The conductor's trace is checked to hold every step.
"""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from bettong.engine import steps
from bettong.engine.steps import Instrumentation, step
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.lineage.errors import BettongError
from bettong.lineage.results import environment

ROUNDS = 9
IDLE_CALLS = 100_000
ASKED_CALLS = 1_000


class _NoFaults:
    """An actuator for runs without faults."""

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        raise NotImplementedError

    def stop(self, node: str) -> tuple[int, InjectionOutcome]:
        raise NotImplementedError

    def restart(self, node: str) -> None:
        raise NotImplementedError

    def pause(self, node: str) -> InjectionOutcome:
        raise NotImplementedError

    def resume(self, node: str) -> str:
        raise NotImplementedError

    def cut_power(self, node: str, keep: object) -> tuple[int, InjectionOutcome]:
        raise NotImplementedError

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        raise NotImplementedError

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        raise NotImplementedError

    def repeat(self, fault: str, link: str) -> str:
        raise NotImplementedError

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        raise NotImplementedError


def _seconds(calls: int, action: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - began) / calls


def _plain(name: str) -> None:
    pass


def _step() -> None:
    with step("batch=1/sink.commit"):
        pass


def idle_seconds() -> float:
    """Seconds that a step takes when nobody listens."""
    steps.install(Instrumentation())
    return statistics.median(_seconds(IDLE_CALLS, _step) for _ in range(ROUNDS))


def _echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            connection.sendall(line)


def bench() -> dict[str, Any]:
    """The figures; raises BettongError when the trace lacks a step."""
    control = RunControl("bench", _NoFaults())
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(listener,), daemon=True).start()
    idle, plain, asked, bare = [], [], [], []
    with Conductor() as conductor, socket.create_connection(listener.getsockname()) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = sock.makefile("rb")
        conductor.begin(control)

        def exchange() -> None:
            for _ in range(2):
                sock.sendall(b"x" * 100 + b"\n")
                lines.readline()

        for _ in range(ROUNDS):
            steps.install(Instrumentation())
            plain.append(_seconds(IDLE_CALLS, lambda: _plain("batch=1/sink.commit")))
            idle.append(_seconds(IDLE_CALLS, _step))
            steps.install(Instrumentation("bench", "driver", 1, conductor.address))
            bare.append(_seconds(ASKED_CALLS, exchange))
            asked.append(_seconds(ASKED_CALLS, _step))
        steps.install(Instrumentation())
    if len(control.events) != 2 * ROUNDS * ASKED_CALLS:
        raise BettongError(f"the trace has {len(control.events)} events")
    return {
        "name": "steps",
        "figures": {
            "idle": _figure(idle, 1e9, "ns", "a function call", plain),
            "asked": _figure(asked, 1e6, "us", "two bare exchanges over TCP", bare),
        },
        "environment": environment(),
    }


def _figure(
    own: list[float], scale: float, unit: str, versus: str, peer: list[float]
) -> dict[str, Any]:
    value, beside = statistics.median(own), statistics.median(peer)
    return {
        "value": round(value * scale, 1),
        "unit": unit,
        "versus": versus,
        "ratio": round(value / beside, 2),
    }
