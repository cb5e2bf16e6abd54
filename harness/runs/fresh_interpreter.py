"""The process in which an application is interpreted once: it answers what standard input asks, and
imports little, for there are many of it."""

from __future__ import annotations

import os
import pickle
import pkgutil
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, NamedTuple

from bettong.engine.interpreter import interpret
from bettong.lineage.errors import BettongError


class Question(NamedTuple):
    """Which application is interpreted, and on what: mappings as pairs, so that what was asked
    before is known again."""

    application: str
    streams: tuple[tuple[str, tuple[bytes, ...]], ...]
    boundaries: tuple[tuple[tuple[str, int], ...], ...]


def _answer(question: Question) -> tuple[Any, ...]:
    app = pkgutil.resolve_name(question.application)
    ends = [dict(end) for end in question.boundaries]
    try:
        found = interpret(app, dict(question.streams), ends)
        state = {
            s.name: (list(entities), s.codec.encode(list(entities.values())))
            for s in app.states
            for entities in (found.state[s.name],)
        }
    except BettongError as e:
        return str(e), {}, {}
    return found.outputs, state, dict(found.failed)


def _clock(ahead: timedelta | None) -> AbstractContextManager[object]:
    if ahead is None:
        return nullcontext()
    import time_machine  # takes as long to be imported as all else together

    return time_machine.travel(ahead)


def main() -> None:
    """Write the answer to standard output, which is not that of the application's functions."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:], question, ahead = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
    with answer, _clock(ahead):
        pickle.dump(_answer(question), answer)


if __name__ == "__main__":
    main()
