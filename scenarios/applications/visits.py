"""Visits to pages: sessions of each user, how often each came before being forgotten, and what
could not be read."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from bettong.engine import (
    DeadLetter,
    Fired,
    application,
    computation,
    decoder,
    encoder,
    expiring,
    key_extractor,
    session,
    sink,
    source,
    state_computation,
    watermark,
)

GAP = 10
FORGOTTEN_AFTER = 25


class Visit(NamedTuple):
    at: float
    user: str


@dataclass
class Pages:
    count: int = 0


@decoder
def text(data: bytes) -> str:
    return data.decode()


@computation
def read(line: str) -> Visit:
    at, user = line.split(",")
    return Visit(float(at), user)


@key_extractor
def user(visit: Visit) -> str:
    return visit.user


def when(visit: Visit) -> float:
    return visit.at


def another(visit: Visit, pages: Pages) -> None:
    pages.count += 1


def join(pages: Pages, others: Pages) -> None:
    pages.count += others.count


@state_computation(state=Pages)
def so_far(visit: Visit, pages: Pages) -> str:
    pages.count += 1
    return f"{visit.user} was here {pages.count} times"


@encoder
def line(text: str) -> bytes:
    return text.encode()


@encoder
def ended(fired: Fired) -> bytes:
    return b"%d pages from %d to %d" % (fired.value.count, fired.start, fired.end)


@encoder
def unreadable(letter: DeadLetter) -> bytes:
    return f"{letter.step} cannot read {letter.value}".encode()


_visits = source("visits", text).to(read)
_known = _visits.key_by(user).merge(watermark(_visits, when, every=3))
_sessions = session("sessions", Pages, another, when, GAP, join)
_counted = expiring(so_far, when, FORGOTTEN_AFTER, lambda pages: [f"{pages.count} are forgotten"])
app = application(
    "visits",
    _known.to(_sessions).to_sink(sink("ended", ended)),
    _known.to(_counted).to_sink(sink("counts", line)),
    on_error=sink("unreadable", unreadable),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """So many visits of a few users, with silences between, and some lines that are none."""
    chance, at, lines = random.Random(seed), 0, []
    for _ in range(count):
        at += chance.choice((1, 2, 5, GAP + 1, FORGOTTEN_AFTER + 1))
        lines.append(
            f"{at},{chance.choice(('ann', 'bob', 'eve'))}" if chance.random() < 0.95 else "?"
        )
    return {"visits": [line.encode() for line in lines]}
