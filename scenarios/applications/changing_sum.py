"""The running sum of each key in three versions of its code, each of which goes on with the state
that those before have written: the second adds a field, the third names its fields anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.engine import Application, application, sink, source, state_computation, state_entity
from bettong.engine.codecs.state import DataclassCodec
from bettong.engine.functions import StateFunction
from bettong.scenarios.applications.running_sum import Sum, amount, line, name
from bettong.scenarios.applications.running_sum import messages as messages

STATE = "Sum"


@dataclass
class CountedSum:
    total: int = 0
    count: int = 0


@dataclass
class Balance:
    amount: int = 0
    changes: int = 0


def renamed(before: dict[str, int]) -> dict[str, int]:
    """A balance's fields from those of either sum."""
    return {"amount": before["total"], "changes": before.get("count", 0)}


@state_computation(state=state_entity(Sum, name=STATE))
def add(message: tuple[str, int], total: Sum) -> tuple[str, int]:
    total.total += message[1]
    return message[0], total.total


@state_computation(state=state_entity(CountedSum, name=STATE))
def add_and_count(message: tuple[str, int], total: CountedSum) -> tuple[str, int]:
    total.count += 1
    total.total += message[1]
    return message[0], total.total


@state_computation(
    state=state_entity(Balance, name=STATE, codec=DataclassCodec(Balance, 2, {1: renamed}))
)
def change(message: tuple[str, int], balance: Balance) -> tuple[str, int]:
    balance.changes += 1
    balance.amount += message[1]
    return message[0], balance.amount


def _version(step: StateFunction) -> Application:
    summed = source("amounts", amount).key_by(name).to(step)
    return application("changing_sum", summed.to_sink(sink("sums", line)))


versions: Sequence[Application] = tuple(map(_version, (add, add_and_count, change)))
app = versions[-1]
