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
from datetime import timedelta
from functools import lru_cache
from itertools import zip_longest

from bettong.engine.interpreter import Interpretation, Output
from bettong.harness.checkers.oracle import OracleError
from bettong.harness.runs.fresh_interpreter import Question
from bettong.harness.scenario import Messages

_KEPT = 64
"""Interpretations: most runs of a scenario have the same input."""
_LATER = timedelta(days=400, hours=5)
"""Another year, month, day, weekday and hour."""
_HASH_SEED, _OTHER_SEED = "1", "2"
"""By which texts are hashed at first, and on another day: where tox says it, the same for all."""


def interpreted(
    application: str, messages: Messages, boundaries: Sequence[Mapping[str, int]]
) -> Interpretation:
    """As :func:`bettong.engine.interpret`, with the entities as they come back from a disk.

    Args:
        application: ``module:attribute``.

    Raises:
        OracleError: a function failed, or ended the process.
    """
    return _interpreted(_question(application, messages, boundaries))


def not_repeatable(
    application: str, messages: Messages, boundaries: Sequence[Mapping[str, int]]
) -> str:
    """How two processes that are given the same messages differ, one today and one by a clock that
    is ahead; empty where they do not."""
    return _not_repeatable(_question(application, messages, boundaries))


def _question(
    application: str, messages: Messages, boundaries: Sequence[Mapping[str, int]]
) -> Question:
    streams = tuple((stream, tuple(sent)) for stream, sent in messages.items())
    return Question(application, streams, tuple(tuple(end.items()) for end in boundaries))


@lru_cache(_KEPT)
def _not_repeatable(question: Question) -> str:
    return _difference(_interpreted(question), _fresh(question, _LATER))


@lru_cache(_KEPT)
def _interpreted(question: Question) -> Interpretation:
    return _fresh(question)


def _fresh(question: Question, ahead: timedelta | None = None) -> Interpretation:
    process = subprocess.run(
        [sys.executable, "-m", "bettong.harness.runs.fresh_interpreter"],
        input=pickle.dumps((sys.path, question, ahead)),
        env={**os.environ, "PYTHONHASHSEED": _HASH_SEED if ahead is None else _OTHER_SEED},
        capture_output=True,
        check=False,
    )
    if process.returncode:
        said = process.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise OracleError(
            f"{question.application}: the process that works out what should be visible ended with "
            f"status {process.returncode} and said {said[-1]}"
        )
    outputs, state, failed = pickle.loads(process.stdout)  # noqa: S301 - from our own process
    if isinstance(outputs, str):
        raise OracleError(outputs)
    app = pkgutil.resolve_name(question.application)
    entities = {
        s.name: dict(zip(keys, s.codec.decode(column, s.codec.version), strict=True))
        for s in app.states
        for keys, column in (state[s.name],)
    }
    return Interpretation(outputs, entities, failed)


def _difference(first: Interpretation, second: Interpretation) -> str:
    for a, b in zip_longest(first.outputs, second.outputs):
        if a != b:
            return f"{_told(a)} at first, {_told(b)} in another process on another day"
    return "" if first.failed == second.failed else "functions fail on other messages"


def _told(output: Output | None) -> str:
    if output is None:
        return "no further output"
    return f"output {output.id} of key {output.key!r} is {output.data.decode(errors='replace')!r}"
