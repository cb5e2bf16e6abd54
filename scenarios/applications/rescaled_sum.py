"""The running sum of each key in two versions of its code, the second of which counts in
hundredths: the fields of its state have the same names and types, and mean something else."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.engine import Application, application, sink, source, state_computation, state_entity
from bettong.engine.codecs.state import DataclassCodec
from bettong.engine.functions import StateFunction
from bettong.scenarios.applications.running_sum import Sum, amount, line, name
from bettong.scenarios.applications.running_sum import messages as messages

STATE = "Sum"


def in_hundredths(before: dict[str, int]) -> dict[str, int]:
    """A sum's field from that of the first version."""
    return {"total": 100 * before["total"]}


@state_computation(state=state_entity(Sum, name=STATE))
def add(message: tuple[str, int], total: Sum) -> tuple[str, int]:
    total.total += message[1]
    return message[0], total.total


@state_computation(
    state=state_entity(Sum, name=STATE, codec=DataclassCodec(Sum, 2, {1: in_hundredths}))
)
def add_hundredths(message: tuple[str, int], total: Sum) -> tuple[str, int]:
    total.total += 100 * message[1]
    return message[0], total.total // 100


def _version(step: StateFunction) -> Application:
    summed = source("amounts", amount).key_by(name).to(step, name="add")
    return application("rescaled_sum", summed.to_sink(sink("sums", line)))


versions: Sequence[Application] = tuple(map(_version, (add, add_hundredths)))
app = versions[-1]
