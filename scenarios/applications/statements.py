"""Balances of accounts that nobody may overdraw, told to all after each third booking: what would
overdraw one is a dead letter, and the account is as it was before, although the step has changed it
by then."""

from __future__ import annotations

from bettong.engine import application, encoder, sink, source, state_computation, watermark
from bettong.engine.functions import takes_ticks
from bettong.engine.ticks import Tick
from bettong.scenarios.applications.accounts import Account, refused
from bettong.scenarios.applications.accounts import messages as messages
from bettong.scenarios.applications.running_sum import amount, name

EVERY = 3


@state_computation(state=Account)
def book(given: tuple[str, int] | Tick, account: Account) -> tuple[int, int] | None:
    if isinstance(given, Tick):
        return account.balance, len(account.bookings)
    account.balance += given[1]
    account.bookings.append(given[1])
    if account.balance < 0:
        raise ValueError(f"{given[0]} would have {account.balance}")
    return None


@encoder
def statement(account: tuple[int, int]) -> bytes:
    return b"%d after %d" % account


def when(message: tuple[str, int]) -> float:
    """All in one day: time is told by the number of bookings alone."""
    return 0.0


_amounts = source("amounts", amount)
app = application(
    "statements",
    _amounts.key_by(name)
    .merge(watermark(_amounts, when, EVERY))
    .to(takes_ticks(book))
    .to_sink(sink("statements", statement)),
    on_error=sink("refused", refused),
)
