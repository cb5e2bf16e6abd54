"""State steps of one batch: messages meet the entities of their keys, in their order."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.engine.batch.flow import (
    Failures,
    Flow,
    as_array,
    listed,
    present,
    run,
    run_on_arrays,
)
from bettong.engine.batch.items import IntArray, Items, concat, order_of, plain
from bettong.engine.batch.plan import Plan
from bettong.engine.batch.visits import Meetings, with_visits
from bettong.engine.functions import State
from bettong.engine.ids import VISIT_WIDTH
from bettong.engine.state.columns import from_columns, to_columns
from bettong.engine.state.entities import entities_of, with_new
from bettong.engine.state.scan import Stored

Load = Callable[[State, list[bytes], list[int]], pa.Array]
LoadAll = Callable[[State], Stored]


@dataclass
class Changed:
    """Entities to which messages have been applied.

    Attributes:
        state: what they are of.
        keys: canonical, each once.
        hashes: of the keys.
        entities: of the keys: objects, or a column as the state's codec writes it.
    """

    state: State
    keys: list[bytes]
    hashes: list[int]
    entities: list[Any] | pa.Array


def apply_state(
    plan: Plan, flow: Flow, inbox: Mapping[int, Items], load: Load, load_all: LoadAll
) -> Changed:
    """Apply the steps that share one state, and push on what they give.

    Args:
        plan: the application.
        flow: takes the results.
        inbox: for each step's number its messages.
        load: gives the column of the entities of canonical keys and their hashes as they were
            before, null where there was none.
        load_all: gives all entities as they were before; asked when a message is for every key.
    """
    items = concat(list(inbox.values()))
    ranks = np.repeat(list(inbox), [len(part) for part in inbox.values()])
    order = order_of(items, ranks)
    if order is not None:
        items, ranks = items.take(order), ranks[order]
    assert items.keys is not None
    state = plan.nodes[next(iter(inbox))].state
    keys = items.keys.used()
    hashes = keys.hashes.tolist()
    number = next(iter(inbox))
    if plan.function(number).arrays:
        column = with_new(state, load(state, keys.keys, hashes))
        changed = _apply_arrays(plan, flow, number, items, keys.codes, column)
        return Changed(state, keys.keys, hashes, changed)
    if keys.for_every_key() is not None:
        return _apply_everywhere(plan, flow, inbox, items, ranks, load_all(state))
    codes = keys.codes.tolist()
    entities = entities_of(state, load(state, keys.keys, hashes))
    calls = _calls(plan, list(inbox), ranks)
    values = plain(items.values)
    begin = perf_counter_ns()
    results, failures = _run(calls, values, list(map(entities.__getitem__, codes)))
    _took(plan, flow, ranks, begin)
    if failures and plan.app.on_error != "fail":
        entities = entities_of(state, load(state, keys.keys, hashes))
        results, failures = _run_carefully(calls, values, codes, entities)
    _push_apart(plan, flow, inbox, items, ranks, results, failures)
    return Changed(state, keys.keys, hashes, entities)


def _apply_everywhere(
    plan: Plan,
    flow: Flow,
    inbox: Mapping[int, Items],
    items: Items,
    ranks: IntArray,
    stored: Stored,
) -> Changed:
    """The same when there are messages for every key."""
    state = plan.nodes[next(iter(inbox))].state
    meetings = Meetings(state, stored, items, plan.app.on_error != "fail")
    calls = _functions(plan, list(inbox))
    steps = ranks.tolist()
    begin = perf_counter_ns()
    visited = meetings.run(lambda place: calls[steps[place]], items)
    _took(plan, flow, ranks, begin)
    met = visited.items(items, meetings.keys)
    visits = np.array(visited.paths, np.int32).reshape(len(met), VISIT_WIDTH)
    met_by = ranks[np.array(visited.places, np.int64)]
    _push_apart(plan, flow, inbox, met, met_by, visited.results, visited.failures, visits)
    return Changed(state, *meetings.changed())


def _apply_arrays(
    plan: Plan, flow: Flow, number: int, items: Items, codes: IntArray, column: pa.StructArray
) -> pa.StructArray:
    """Apply a state computation over arrays; gives the changed entities."""
    columns = to_columns(column)
    function = plan.function(number)
    begin = perf_counter_ns()
    results = run_on_arrays(function, len(items), as_array(items.values), codes, columns)
    flow.meter.step(plan.nodes[number].name, len(items), perf_counter_ns() - begin)
    flow.push(number, present(items, results))
    return from_columns(function.name, columns, column.type)


def _took(plan: Plan, flow: Flow, ranks: IntArray, begin: int) -> None:
    """Steps that share a state run together; each is given its messages' share of the time."""
    took = perf_counter_ns() - begin
    counts = np.bincount(ranks)
    for number in np.flatnonzero(counts).tolist():
        count = int(counts[number])
        flow.meter.step(plan.nodes[number].name, count, took * count // len(ranks))


Calls = Callable[[Any, Any], Any] | list[Callable[[Any, Any], Any]]
"""The function of all messages, or one for each of them."""


def _functions(plan: Plan, steps: Sequence[int]) -> Mapping[int, Callable[[Any, Any], Any]]:
    return {
        number: listed(plan.call(number)) if _is_multi(plan, number) else plan.call(number)
        for number in steps
    }


def _calls(plan: Plan, steps: Sequence[int], ranks: IntArray) -> Calls:
    of_step = _functions(plan, steps)
    return of_step[steps[0]] if len(steps) == 1 else [of_step[n] for n in ranks.tolist()]


def _run(calls: Calls, values: list[Any], entities: list[Any]) -> tuple[list[Any], Failures]:
    if isinstance(calls, list):
        return run(operator.call, calls, values, entities)
    return run(calls, values, entities)


def _run_carefully(
    calls: Calls, values: list[Any], codes: list[int], entities: list[Any]
) -> tuple[list[Any], Failures]:
    """The same when a function is known to fail: the entity is as it was before, whatever the
    function has done to it."""
    results: list[Any] = []
    failures: dict[int, Exception] = {}
    for place, (value, code) in enumerate(zip(values, codes, strict=True)):
        call = calls[place] if isinstance(calls, list) else calls
        before = copy.deepcopy(entities[code])
        try:
            results.append(call(value, entities[code]))
        except Exception as e:  # whatever a user's function raises
            entities[code] = before
            failures[place] = e
            results.append(None)
    return results, failures


def _push_apart(
    plan: Plan,
    flow: Flow,
    inbox: Mapping[int, Items],
    items: Items,
    ranks: IntArray,
    results: list[Any],
    failures: Failures,
    visits: IntArray | None = None,
) -> None:
    """Push on what each of the steps has given.

    Args:
        visits: what meetings append to the messages' ids, when some are for every key.
    """
    if len(inbox) == 1 and not plan.visits(next(iter(inbox))):
        _push(plan, flow, next(iter(inbox)), items, results, failures)
        return
    for number in sorted(set(ranks.tolist())):
        places = np.flatnonzero(ranks == number)
        own = [results[i] for i in places.tolist()]
        failed = {i: failures[p] for i, p in enumerate(places.tolist()) if p in failures}
        part = items.take(places).of_depth(inbox[number].paths.shape[1])
        if plan.visits(number):
            part = with_visits(part, None if visits is None else visits[places])
        _push(plan, flow, number, part, own, failed)


def _push(
    plan: Plan, flow: Flow, number: int, items: Items, results: list[Any], failures: Failures
) -> None:
    items, results = flow.settle(number, items, results, failures)
    if _is_multi(plan, number):
        flow.push(number, items.one_to_many(results))
    else:
        flow.push(number, present(items, results))


def _is_multi(plan: Plan, number: int) -> bool:
    return plan.nodes[number].operation == "state_computation_multi"
