"""A question about a query, from its beginning to the answer that is kept and reported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Literal

from bettong.harness.events import CounterexampleFound, Finished, Handler, Started
from bettong.harness.queries.request import Request
from bettong.lineage.own_folder import own_folder
from bettong.lineage.results import Result


def answer(
    request: Request, kind: Literal["sink", "job"], ask: Callable[[], Result], on_event: Handler
) -> Result:
    """Ask, between the events that say so; raises UsageError when another process writes to the
    request's folder."""
    with own_folder(request.out) if request.out is not None else nullcontext():
        on_event(Started(request.target.rpartition(":")[2], kind))
        return finish(request, ask(), on_event)


def finish(request: Request, result: Result, on_event: Handler) -> Result:
    """Keep the result in the request's folder, if it has one, and report it."""
    if request.out is not None:
        result.write(request.out)
    for counterexample in result.counterexamples:
        on_event(CounterexampleFound(counterexample))
    on_event(Finished(result, request.out))
    return result
