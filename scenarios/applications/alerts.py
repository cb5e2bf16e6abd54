"""Alerts on transactions of users: each large one, a user's total, and totals of five and ten
minutes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from bettong.engine import (
    Fired,
    application,
    computation,
    decoder,
    encoder,
    key_extractor,
    sink,
    sliding,
    source,
    state_computation,
    tumbling,
)

LARGE = 2_000
MUCH_OVERALL = 10_000
MUCH_IN_A_WINDOW = 4_000


class Transaction(NamedTuple):
    at: float
    user: str
    amount: int


@dataclass
class Total:
    user: str = ""
    amount: int = 0


@dataclass
class Overall:
    amount: int = 0


@decoder
def transaction(data: bytes) -> Transaction:
    at, user, amount = data.decode().split(",")
    return Transaction(float(at), user, int(amount))


@computation
def large(message: Transaction) -> str | None:
    if abs(message.amount) < LARGE:
        return None
    return f"large transaction of {message.user}: {message.amount}"


@key_extractor
def user(message: Transaction) -> str:
    return message.user


@state_computation(state=Overall)
def overall(message: Transaction, total: Overall) -> str | None:
    before, total.amount = total.amount, total.amount + message.amount
    if before <= MUCH_OVERALL < total.amount:
        return f"{message.user} has reached {total.amount}"
    return None


def add(message: Transaction, total: Total) -> None:
    total.user = message.user
    total.amount += message.amount


def when(message: Transaction) -> float:
    return message.at


@computation
def too_much(window: Fired) -> str | None:
    total: Total = window.value
    if abs(total.amount) < MUCH_IN_A_WINDOW:
        return None
    return f"{total.user} moved {total.amount} from {window.start:g} to {window.end:g}"


@encoder
def text(alert: str) -> bytes:
    return alert.encode()


_transactions = source("transactions", transaction)
_by_user = _transactions.key_by(user)
_five = _by_user.to(tumbling("five_minutes", Total, add, when, 300, delay=10))
_ten = _by_user.to(sliding("ten_minutes", Total, add, when, 600, 300, delay=10))
app = application(
    "alerts",
    _transactions.to(large).to_sink(sink("large_ones", text)),
    _by_user.to(overall).to_sink(sink("reached", text)),
    _five.to(too_much).to_sink(sink("in_five", text)),
    _ten.to(too_much, name="too_much_in_ten").to_sink(sink("in_ten", text)),
)


def messages(count: int, seed: int = 0, users: int = 20) -> dict[str, list[bytes]]:
    """Input of this application, about four transactions a minute, some up to 15 s late."""
    chance = random.Random(seed)
    found = []
    for n in range(count):
        at = max(0.0, 15.0 * n - chance.choice((0, 0, 0, 15)) * chance.random())
        amount = round(chance.gauss(300, 900))
        found.append(f"{at:.3f},user{chance.randrange(users)},{amount}".encode())
    return {"transactions": found}
