"""Lineages that share a table: what is written comes back, in all its orders."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hypotheses import as_one_system, bounds, lineages

from bettong.lineage.faults import Bounds, Fault, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.search.hypotheses import Hypotheses
from bettong.lineage.search.lineage_table import LineageTable, StoredLineage


def _stored(value: dict[str, Any]) -> Any:
    return json.loads(json.dumps(value))


def _same(read: Lineage, written: Lineage) -> None:
    assert list(read.graph.nodes(data=True)) == list(written.graph.nodes(data=True))
    for id in written.graph:
        assert list(read.graph.pred[id]) == list(written.graph.pred[id])
        assert list(read.graph.succ[id]) == list(written.graph.succ[id])
    assert list(read.goals.items()) == list(written.goals.items())
    assert list(read.faults.items()) == list(written.faults.items())


@settings(max_examples=40, deadline=None)
@given(st.lists(lineages(), min_size=1, max_size=4), st.data())
def test_what_was_written_comes_back_and_goes_on(some: list[Lineage], data: st.DataObject) -> None:
    writing, reading = LineageTable(), LineageTable()
    values = [_stored(writing.write(lineage)) for lineage in some]
    until = data.draw(st.integers(0, len(some)))
    for value, lineage in zip(values[:until], some[:until], strict=True):
        _same(reading.read(value), lineage)
    assert [_stored(reading.write(lineage)) for lineage in some[until:]] == values[until:]


@settings(max_examples=40, deadline=None)
@given(st.lists(lineages(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_was_put_in_comes_out_in_any_order(some: list[Lineage], chance: Random) -> None:
    table = LineageTable()
    entries = [(table.put(lineage), lineage) for lineage in some]
    chance.shuffle(entries)
    for entry, lineage in entries:
        _same(table.get(entry), lineage)


def _read_lazily(some: list[Lineage]) -> list[StoredLineage]:
    """The same lineages in a table of another process."""
    there, here = LineageTable(), LineageTable()
    values = [pickle.loads(pickle.dumps(there.write(lineage))) for lineage in some]
    return [here.read_lazily(value) for value in values]


@settings(max_examples=40, deadline=None)
@given(st.lists(lineages(), min_size=1, max_size=4), st.data())
def test_lineages_of_another_table_are_taken_over(some: list[Lineage], data: st.DataObject) -> None:
    writing, reading = LineageTable(), LineageTable()
    stored = _read_lazily(some)
    for lineage, lazy in zip(some, stored, strict=True):
        given_so = lazy if data.draw(st.booleans()) else lineage
        _same(reading.read(_stored(writing.write(given_so))), lineage)
    for lineage, lazy in zip(some, stored, strict=True):
        _same(lazy, lineage)


@settings(max_examples=40, deadline=None)
@given(st.lists(lineages(), min_size=1, max_size=4), bounds, st.data())
def test_lineages_of_a_table_put_up_what_others_do(
    some: list[Lineage], bound: Bounds, data: st.DataObject
) -> None:
    for number, lineage in enumerate(some):
        for other in some[:number]:
            as_one_system(other, lineage)
    stored = _read_lazily(some)
    seen: list[list[FaultSet]] = []
    lazily = [data.draw(st.booleans()) for _ in some]
    for which in ([False] * len(some), lazily):
        mixed = [two[lazy] for *two, lazy in zip(some, stored, which, strict=True)]
        seen.append([])
        with Hypotheses(mixed[0], bound) as hypotheses:
            for lineage in mixed:
                hypotheses.extend(lineage)
                schedule = hypotheses.smallest("absent")
                if schedule is not None:
                    seen[-1].append(schedule)
                    hypotheses.exclude(schedule)
    assert seen[0] == seen[1]


def test_a_node_in_another_form_is_another_one() -> None:
    early, late = Fault("crash(a, 1)", "crash", time=1), Fault("crash(a, 1)", "crash", time=7)
    first, second = Lineage(), Lineage()
    first.leaf("life", [early])
    second.leaf("life")
    second.faults[late.id] = late
    writing, reading = LineageTable(), LineageTable()
    for lineage in (first, second, first):
        _same(reading.read(_stored(writing.write(lineage))), lineage)


def test_what_is_known_is_not_written_again() -> None:
    lineage = Lineage()
    lineage.firing("a", [lineage.leaf("life", [Fault("crash(a, 1)", "crash")])], "live")
    table = LineageTable()
    table.write(lineage)
    value = table.write(lineage)
    assert not value["new"] and not value["new_faults"]
    assert value["nodes"] == [(0, 3)]


def test_what_belongs_to_another_table_is_refused() -> None:
    lineage = Lineage()
    lineage.fact("a")
    table = LineageTable()
    table.write(lineage)
    with pytest.raises(IndexError):
        LineageTable().read(_stored(table.write(lineage)))
