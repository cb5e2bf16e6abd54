"""What an application makes of its messages, worked out in a process that has never run its
functions before.

A function that keeps something outside its state, such as a module's dict, gives another result
each time that it is asked in one process. What is expected of a run must not hang on the runs that
were judged before it.
"""

from __future__ import annotations

import os
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

import time_machine

from bettong.engine import Application, interpret
from bettong.engine.interpreter import Interpretation, Output
from bettong.harness.checkers.oracle import OracleError
from bettong.harness.scenario import Messages
from bettong.lineage.errors import BettongError

_KEPT = 64
"""Interpretations: most runs of a scenario have the same input."""
_LATER = timedelta(days=400, hours=5)
"""Another year, month, day, weekday and hour."""


class _Asked(NamedTuple):
    """Mappings as pairs, so that what was asked before is known again."""

    application: str
    streams: tuple[tuple[str, tuple[bytes, ...]], ...]
    boundaries: tuple[tuple[tuple[str, int], ...], ...] | None


def interpreted(
    application: str, messages: Messages, boundaries: Sequence[Mapping[str, int]]
) -> Interpretation:
    """As :func:`bettong.engine.interpret`, with the entities as they come back from a disk.

    Args:
        application: ``module:attribute``.

    Raises:
        OracleError: a function failed, or ended the process.
    """
    return _interpreted(_asked(application, messages, boundaries))


def not_repeatable(application: str, messages: Messages) -> str:
    """How two processes that are given the same messages differ, one today and one by a clock that
    is ahead; empty where they do not."""
    return _not_repeatable(_asked(application, messages, None))


def _asked(
    application: str, messages: Messages, boundaries: Sequence[Mapping[str, int]] | None
) -> _Asked:
    streams = tuple((stream, tuple(sent)) for stream, sent in messages.items())
    ends = None if boundaries is None else tuple(tuple(end.items()) for end in boundaries)
    return _Asked(application, streams, ends)


@lru_cache(_KEPT)
def _not_repeatable(asked: _Asked) -> str:
    return _difference(_interpreted(asked), _fresh(asked, _LATER))


@lru_cache(_KEPT)
def _interpreted(asked: _Asked) -> Interpretation:
    return _fresh(asked)


def _fresh(asked: _Asked, ahead: timedelta | None = None) -> Interpretation:
    process = subprocess.run(
        [sys.executable, "-m", __name__],
        input=pickle.dumps((sys.path, asked, ahead)),
        capture_output=True,
        check=False,
    )
    if process.returncode:
        said = process.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise OracleError(
            f"{asked.application}: the process that works out what should be visible ended with "
            f"status {process.returncode} and said {said[-1]}"
        )
    outputs, state, failed = pickle.loads(process.stdout)  # noqa: S301 - from our own process
    if isinstance(outputs, str):
        raise OracleError(outputs)
    app = _load(asked.application)
    entities = {
        s.name: dict(zip(keys, s.codec.decode(column, s.codec.version), strict=True))
        for s in app.states
        for keys, column in (state[s.name],)
    }
    return Interpretation(outputs, entities, failed)


def _load(application: str) -> Application:
    found: Application = pkgutil.resolve_name(application)
    return found


def _difference(first: Interpretation, second: Interpretation) -> str:
    for a, b in zip_longest(first.outputs, second.outputs):
        if a != b:
            return f"{_told(a)} at first, {_told(b)} in another process on another day"
    return "" if first.failed == second.failed else "functions fail on other messages"


def _told(output: Output | None) -> str:
    if output is None:
        return "no further output"
    return f"output {output.id} of key {output.key!r} is {output.data.decode(errors='replace')!r}"


def _answer(asked: _Asked) -> tuple[Any, ...]:
    app = _load(asked.application)
    ends = None if asked.boundaries is None else [dict(end) for end in asked.boundaries]
    try:
        found = interpret(app, dict(asked.streams), ends)
        state = {
            s.name: (list(entities), s.codec.encode(list(entities.values())))
            for s in app.states
            for entities in (found.state[s.name],)
        }
    except BettongError as e:
        return str(e), {}, {}
    return found.outputs, state, dict(found.failed)


def main() -> None:
    """Interpret what standard input asks for, and write the answer to standard output, which is not
    that of the application's functions."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:], asked, ahead = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
    with answer, nullcontext() if ahead is None else time_machine.travel(ahead):
        pickle.dump(_answer(_Asked(*asked)), answer)


if __name__ == "__main__":
    main()
