"""Functions over arrays do what the same functions over messages do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from batch_run import Simulation, aligned
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.engine import (
    GraphError,
    UserFunctionError,
    application,
    arrays,
    computation,
    interpret,
    key_extractor,
    sink,
    source,
)
from bettong.engine.state.store import LocalStore
from bettong.engine.storage.simulated import SimulatedDisk
from bettong.lineage.errors import UsageError
from bettong.scenarios.applications import running_sum, running_sum_arrays


@given(
    st.lists(st.tuples(st.sampled_from("abcé"), st.integers(-5, 5)), max_size=30),
    st.integers(1, 9),
)
@settings(deadline=None)
def test_running_sums_of_both_forms_are_the_same(amounts: list[tuple[str, int]], size: int) -> None:
    streams = {"amounts": [f"{k},{n}".encode() for k, n in amounts]}
    expected = interpret(running_sum.app, streams)
    assert interpret(running_sum_arrays.app, streams) == expected
    simulation = Simulation(
        running_sum_arrays.app, LocalStore(Path("/log"), SimulatedDisk()), streams
    )
    manifest = simulation.run([*aligned(streams, size), {"amounts": len(amounts)}])
    rows = simulation.sinks["sums"].rows
    assert sorted(rows) == sorted((o.id, o.key, o.data) for o in expected.outputs)
    keys = list(expected.state["Sum"])
    assert simulation.entities(manifest, "Sum", keys) == expected.state["Sum"]


@arrays.computation
def without_zeros(values: pa.StructArray) -> pa.Array:
    return pc.if_else(pc.equal(values.field("number"), 0), None, values)


@arrays.predicate
def small(values: pa.StructArray) -> pa.BooleanArray:
    return pc.less(values.field("number"), 50)


@computation
def as_pair(value: dict[str, object]) -> tuple[object, object]:
    return value["name"], value["number"]


@key_extractor
def first(pair: tuple[object, object]) -> str:
    return str(pair[0])


def test_steps_of_both_forms_go_together() -> None:
    app = application(
        "mixed",
        source("amounts", running_sum_arrays.amounts)
        .to(without_zeros)
        .to(small)
        .to(as_pair)
        .key_by(first)
        .to(running_sum.add)
        .to_sink(sink("sums", running_sum.line)),
    )
    streams = {"amounts": [b"a,1", b"b,0", b"a,70", b"a,2"]}
    expected = interpret(app, streams).outputs
    assert [(o.id, o.data) for o in expected] == [("amounts/0", b"a 1"), ("amounts/3", b"a 3")]
    simulation = Simulation(app, LocalStore(Path("/log"), SimulatedDisk()), streams)
    simulation.run([{"amounts": 4}])
    assert simulation.sinks["sums"].rows == [(o.id, o.key, o.data) for o in expected]


def test_a_result_of_another_length_is_refused() -> None:
    @arrays.computation
    def shorter(values: pa.Array) -> pa.Array:
        return values[1:]

    app = application(
        "shorter",
        source("amounts", running_sum_arrays.amounts).to(shorter).done(),
    )
    simulation = Simulation(
        app, LocalStore(Path("/log"), SimulatedDisk()), {"amounts": [b"a,1", b"a,2"]}, read_slices=1
    )
    with pytest.raises(UserFunctionError, match=r"step shorter gave .* for 2 messages"):
        simulation.run([{"amounts": 2}])


def test_states_that_cannot_be_columns_are_refused() -> None:
    @dataclass
    class Words:
        words: list[str] = field(default_factory=list)

    with pytest.raises(UsageError, match="dataclass of int, float and bool fields"):
        arrays.state_computation(state=Words)(lambda values, codes, columns: None)
    keyed = source("amounts", running_sum_arrays.amounts).key_by(running_sum_arrays.names)
    with pytest.raises(GraphError, match="has its state for itself"):
        application(
            "shared",
            keyed.to(running_sum.add).done(),
            keyed.to(running_sum_arrays.add, name="other").done(),
        )


def test_fields_that_may_be_none_are_no_numpy_columns() -> None:
    @dataclass
    class Maybe:
        last: float | None = None

    with pytest.raises(UsageError, match="fields that are never None, which Maybe is not"):
        arrays.state_computation(state=Maybe)(lambda values, codes, columns: None)
