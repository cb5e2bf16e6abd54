"""Balances of accounts that nobody may overdraw: what would is a dead letter, and the account is as
it was before, although the step has changed it by then."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from bettong.engine import DeadLetter, application, encoder, sink, source, state_computation
from bettong.scenarios.applications.running_sum import amount, name


@dataclass
class Account:
    balance: int = 0
    bookings: list[int] = field(default_factory=list)


@state_computation(state=Account)
def book(message: tuple[str, int], account: Account) -> tuple[str, int, int]:
    account.balance += message[1]
    account.bookings.append(message[1])
    if account.balance < 0:
        raise ValueError(f"{message[0]} would have {account.balance}")
    return message[0], account.balance, len(account.bookings)


@encoder
def booked(account: tuple[str, int, int]) -> bytes:
    return b"%s has %d after %d" % (account[0].encode(), *account[1:])


@encoder
def refused(letter: DeadLetter) -> bytes:
    return f"{letter.value[0]}: {letter.error}".encode()


app = application(
    "accounts",
    source("amounts", amount).key_by(name).to(book).to_sink(sink("booked", booked)),
    on_error=sink("refused", refused),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """So many bookings of a few accounts, about a third of which would overdraw one."""
    chance = random.Random(seed)
    names = ("one", "two", "three")
    lines = (f"{chance.choice(names)},{chance.randint(-15, 15)}" for _ in range(count))
    return {"amounts": [line.encode() for line in lines]}
