"""Running sums over two streams, before and after a change that adds a third one, whose numbers go
into the same sums, and a sink, which is told of these alone."""

from __future__ import annotations

from bettong.engine import application, computation, sink, source
from bettong.scenarios.applications import running_sum_merged
from bettong.scenarios.applications.running_sum import add, amount, line, name

NAME = "extended_sum"


@computation
def as_they_are(gift: tuple[str, int]) -> tuple[str, int]:
    return gift


_numbers = source("amounts", amount).merge(source("corrections", amount))
_gifts = source("gifts", amount)
before = application(
    NAME,
    _numbers.key_by(name).to(add).to_sink(sink("sums", line)),
    _numbers.to(as_they_are).to_sink(sink("copies", line)),
)
app = application(
    NAME,
    _numbers.merge(_gifts).key_by(name).to(add).to_sink(sink("sums", line)),
    _numbers.to(as_they_are).to_sink(sink("copies", line)),
    _gifts.to(as_they_are, name="thanks").to_sink(sink("given", line)),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """So many amounts, and as many corrections and gifts."""
    found = running_sum_merged.messages(count, seed)
    return {**found, "gifts": found["amounts"][::-1]}
