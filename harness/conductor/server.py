"""The conductor: every step of every process asks it, before and after, and goes on when answered.

It serves the wire protocol of :mod:`bettong.engine.steps` on loopback, one thread for each
connection, so that a step that is held back holds nothing else. What is to happen at a step is
decided by the :class:`~bettong.harness.conductor.run_control.RunControl` of the run that the
process names.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from itertools import count
from typing import Any

from bettong.harness.conductor.run_control import RunControl
from bettong.harness.faults.fault import Go
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import TraceError, TraceEvent

_LONGEST_LINE = 1 << 26
"""An event may tell of thousands of calls to the disk, each with two long paths."""


class Conductor:
    """A server for the steps of any number of runs.

    Attributes:
        address: ``host:port`` for :class:`~bettong.engine.steps.Instrumentation`.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._runs: dict[str, RunControl] = {}
        self._connections: set[socket.socket] = set()
        self._ids = count()
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address = "{}:{}".format(*self._listener.getsockname()[:2])
        threading.Thread(target=self._accept, name="conductor", daemon=True).start()

    def begin(self, control: RunControl) -> None:
        """Let the processes of this run take steps."""
        self._runs[control.run] = control

    def end(self, control: RunControl) -> None:
        """Whatever still belongs to this run must not go on."""
        self._runs.pop(control.run, None)
        control.close()

    def close(self) -> None:
        """Stop serving; whoever asks from now on is told that the run is over."""
        for control in list(self._runs.values()):
            self.end(control)
        for sock in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits on it
        self._listener.close()

    def __enter__(self) -> Conductor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection_id = next(self._ids)
        seen: set[RunControl] = set()
        self._connections.add(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection, connection.makefile("rb") as lines:
                while line := lines.readline(_LONGEST_LINE):
                    answer = self._answer(connection_id, line, seen)
                    if answer is None:
                        return
                    connection.sendall(answer)
        except OSError:
            return  # the process is gone
        except Exception as e:
            for control in seen:
                control.fail(e)
        finally:
            self._connections.discard(connection)
            for control in seen:
                control.gone(connection_id)

    def _answer(self, connection_id: int, line: bytes, seen: set[RunControl]) -> bytes | None:
        try:
            request: dict[str, Any] = json.loads(line)
            event = TraceEvent.from_value(request["event"])
            control = self._runs.get(request["run"])
        except (KeyError, TypeError, ValueError, TraceError) as e:
            return _refusal(f"not a step: {e}")
        if control is None:
            return _refusal(f"run {request['run']!r} is over")
        seen.add(control)
        try:
            go = control.notify(connection_id, event)
        except BettongError as e:
            return _refusal(str(e))
        except Exception as e:  # of the harness: the process must not look as if it had died
            control.fail(e)
            return None
        return _GO if go == Go() else None if go is None else _reply(go)


_GO = b'{"go":true}\n'


def _refusal(text: str) -> bytes:
    return json.dumps({"go": False, "error": text}).encode() + b"\n"


def _reply(go: Go) -> bytes:
    answer: dict[str, Any] = {"go": True}
    if go.errno is not None:
        answer["errno"] = go.errno
    if go.call:
        answer["call"] = go.call
    if go.read:
        answer["read"] = go.read
    if go.lasting:
        answer["lasting"] = True
    if go.done:
        answer["done"] = True
    if go.cut:
        answer["cut"] = go.cut
    if go.hold:
        answer["hold"] = go.hold
    if go.answer is not None:
        answer["answer"] = go.answer
    return json.dumps(answer).encode() + b"\n"
