"""Sums of all keys that are told by ticks, in two versions of the code, the second of which counts
in hundredths: a tick meets what the first version has written beside what the second one has."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.engine import (
    Application,
    application,
    sink,
    source,
    state_computation,
    state_entity,
    watermark,
)
from bettong.engine.codecs.state import DataclassCodec
from bettong.engine.functions import State, StateFunction, takes_ticks
from bettong.engine.ticks import Tick
from bettong.scenarios.applications.rescaled_sum import STATE, in_hundredths
from bettong.scenarios.applications.running_sum import Sum, amount, line, name
from bettong.scenarios.applications.running_sum import messages as messages
from bettong.scenarios.applications.statements import when

EVERY = 2
_HUNDREDTHS = state_entity(Sum, name=STATE, codec=DataclassCodec(Sum, 2, {1: in_hundredths}))


def _adding(state: State, scale: int) -> StateFunction:
    @state_computation(state=state)
    def add(given: tuple[str, int] | Tick, total: Sum) -> tuple[str, int] | None:
        if isinstance(given, Tick):
            return "told", total.total // scale
        total.total += scale * given[1]
        return None

    return takes_ticks(add)


def _version(step: StateFunction) -> Application:
    amounts = source("amounts", amount)
    told = amounts.key_by(name).merge(watermark(amounts, when, EVERY)).to(step, name="add")
    return application("rescaled_totals", told.to_sink(sink("sums", line)))


versions: Sequence[Application] = tuple(
    map(_version, (_adding(state_entity(Sum, name=STATE), 1), _adding(_HUNDREDTHS, 100)))
)
app = versions[-1]
