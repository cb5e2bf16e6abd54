"""Votes for letters: each message is a letter and a number of votes, each output its total."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass

from bettong.engine import (
    application,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
)


@dataclass
class Tally:
    votes: int = 0


@decoder(header_length=4, length_fmt=">I")
def ballot(data: bytes) -> tuple[str, int]:
    """A letter followed by its votes as four big-endian bytes."""
    return chr(data[0]), int.from_bytes(data[1:5], "big")


@key_extractor
def letter(vote: tuple[str, int]) -> str:
    return vote[0]


@state_computation(state=Tally)
def tally(vote: tuple[str, int], so_far: Tally) -> tuple[str, int]:
    so_far.votes += vote[1]
    return vote[0], so_far.votes


@encoder
def result(total: tuple[str, int]) -> bytes:
    return f"{total[0]} => {total[1]}".encode()


app = application(
    "alphabet_votes",
    source("votes", ballot).key_by(letter).to(tally).to_sink(sink("totals", result)),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Input of this application."""
    chance = random.Random(seed)
    return {
        "votes": [
            chance.choice(string.ascii_lowercase).encode()
            + chance.randrange(10_000).to_bytes(4, "big")
            for _ in range(count)
        ]
    }
