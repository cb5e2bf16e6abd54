"""Orders are checked against the market: two streams share one state.

The NBBO stream says the national best bid and offer of each symbol; a symbol whose spread is too
wide is not to be traded. Orders for such a symbol are rejected, which is rare; other orders give
no output.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from bettong.engine import (
    application,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
)

WIDEST = 0.05
"""The widest spread, in money, and as a part of the middle price, at which a symbol is traded."""


@dataclass
class Market:
    bid: float = 0.0
    offer: float = 0.0
    rejecting: bool = False


class Quote(NamedTuple):
    symbol: str
    bid: float
    offer: float


class Order(NamedTuple):
    number: str
    symbol: str
    side: str
    quantity: int
    price: float


class Rejection(NamedTuple):
    order: Order
    bid: float
    offer: float


@decoder
def quote(data: bytes) -> Quote:
    symbol, bid, offer = data.decode().split("|")
    return Quote(symbol, float(bid), float(offer))


@decoder
def order(data: bytes) -> Order:
    number, symbol, side, quantity, price = data.decode().split("|")
    return Order(number, symbol, side, int(quantity), float(price))


@key_extractor
def quoted(message: Quote) -> str:
    return message.symbol


@key_extractor
def ordered(message: Order) -> str:
    return message.symbol


@state_computation(state=Market)
def update_market(message: Quote, market: Market) -> None:
    middle = (message.bid + message.offer) / 2
    spread = message.offer - message.bid
    market.bid, market.offer = message.bid, message.offer
    market.rejecting = spread >= WIDEST or spread / middle >= WIDEST


@state_computation(state=Market)
def check_order(message: Order, market: Market) -> Rejection | None:
    return Rejection(message, market.bid, market.offer) if market.rejecting else None


@encoder
def rejection(message: Rejection) -> bytes:
    return "|".join(map(str, (*message.order, message.bid, message.offer))).encode()


app = application(
    "market_spread",
    source("nbbo", quote).key_by(quoted).to(update_market).done(),
    source("orders", order).key_by(ordered).to(check_order).to_sink(sink("rejected", rejection)),
)


def messages(
    count: int, seed: int = 0, symbols: int = 350, rejected: float = 1 / 70_000
) -> dict[str, list[bytes]]:
    """Input of this application: ``count`` messages of each stream, 50 to 60 bytes long.

    About the given part of the orders is rejected, since a symbol's spread is wide for as long
    as a quote lasts.
    """
    chance = random.Random(seed)
    names = [f"S{n:04d}" for n in range(symbols)]
    middle = [chance.uniform(5, 500) for _ in names]
    quotes, orders = [], []
    for n in range(count):
        at = chance.randrange(symbols)
        middle[at] *= chance.uniform(0.9999, 1.0001)
        half = 0.04 if chance.random() < rejected else 0.005
        quotes.append(
            f"{names[at]}|{middle[at] - half:022.12f}|{middle[at] + half:022.12f}".encode()
        )
        wanted = chance.randrange(symbols)
        side = chance.choice(("buy", "sell"))
        orders.append(
            f"order{n:012d}|{names[wanted]}|{side}|{chance.randrange(1, 1000):04d}|"
            f"{middle[wanted]:018.9f}".encode()
        )
    return {"nbbo": quotes, "orders": orders}
