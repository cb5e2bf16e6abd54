"""Who has how many followers: a job over a stream that ends with the message ``end``.

Users are spread over shards; the end signal goes to every shard, which then gives its users'
followers. So the results are complete, and come once, when the input does.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.engine import (
    application,
    computation_multi,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation_multi,
)

SHARDS = 8
END = "end"


class Part(NamedTuple):
    shard: int
    follower: str
    followed: str


@dataclass
class Shard:
    followers: dict[str, list[str]] = field(default_factory=dict)


@decoder
def edge(data: bytes) -> tuple[str, ...]:
    return tuple(data.decode().split())


@computation_multi
def to_shards(words: tuple[str, ...]) -> list[Part]:
    if words == (END,):
        return [Part(shard, END, END) for shard in range(SHARDS)]
    follower, followed = words
    return [Part(zlib.crc32(followed.encode()) % SHARDS, follower, followed)]


@key_extractor
def shard_of(part: Part) -> int:
    return part.shard


@state_computation_multi(state=Shard)
def follow(part: Part, shard: Shard) -> list[tuple[str, int]]:
    if part.follower == END:
        return [(user, len(known)) for user, known in sorted(shard.followers.items())]
    known = shard.followers.setdefault(part.followed, [])
    if part.follower not in known:
        known.append(part.follower)
    return []


@encoder
def line(result: tuple[str, int]) -> bytes:
    return b"%s has %d" % (result[0].encode(), result[1])


app = application(
    "follower_graph",
    source("edges", edge)
    .to(to_shards)
    .key_by(shard_of)
    .to(follow)
    .to_sink(sink("followers", line)),
)


def messages(count: int, seed: int = 0, users: int = 50) -> dict[str, list[bytes]]:
    """Input of this application; the last message is the end signal."""
    chance = random.Random(seed)
    edges = [
        b"user%d user%d" % (chance.randrange(users), chance.randrange(users))
        for _ in range(count - 1)
    ]
    return {"edges": [*edges, END.encode()]}
