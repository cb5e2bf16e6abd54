"""The running sum of each key, before and after a change that renames the steps and the field of
the state, and adds a step. The state goes on under its own name, as source and sink do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.engine import (
    Application,
    application,
    computation,
    key_extractor,
    sink,
    source,
    state_computation,
    state_entity,
)
from bettong.engine.codecs.state import DataclassCodec
from bettong.scenarios.applications.running_sum import Sum, amount, line, name
from bettong.scenarios.applications.running_sum import messages as messages

NAME, STATE = "renamed_sum", "Sum"


@dataclass
class Balance:
    amount: int = 0


def renamed(before: dict[str, int]) -> dict[str, int]:
    """A balance's field from that of a sum."""
    return {"amount": before["total"]}


@state_computation(state=state_entity(Sum, name=STATE))
def add(message: tuple[str, int], total: Sum) -> tuple[str, int]:
    total.total += message[1]
    return message[0], total.total


@key_extractor
def account(message: tuple[str, int]) -> str:
    return message[0]


@computation
def as_they_are(message: tuple[str, int]) -> tuple[str, int]:
    return message


@state_computation(
    state=state_entity(Balance, name=STATE, codec=DataclassCodec(Balance, 2, {1: renamed}))
)
def change(message: tuple[str, int], balance: Balance) -> tuple[str, int]:
    balance.amount += message[1]
    return message[0], balance.amount


_amounts = source("amounts", amount)
before = application(NAME, _amounts.key_by(name).to(add).to_sink(sink("sums", line)))
app = application(
    NAME,
    _amounts.to(as_they_are).key_by(account).to(change).to_sink(sink("sums", line)),
)
versions: Sequence[Application] = (before, app)
