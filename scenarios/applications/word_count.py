"""Running totals of words: "They know they found it." gives they 1, know 1, they 2, found 1,
it 1."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bettong.engine import (
    application,
    computation_multi,
    decoder,
    encoder,
    key_extractor,
    sink,
    source,
    state_computation,
)

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass
class WordTotal:
    count: int = 0


@decoder
def line(data: bytes) -> str:
    return data.decode(errors="replace")


@computation_multi
def split(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@key_extractor
def word(found: str) -> str:
    return found


@state_computation(state=WordTotal)
def count(found: str, total: WordTotal) -> tuple[str, int]:
    total.count += 1
    return found, total.count


@encoder
def total_line(total: tuple[str, int]) -> bytes:
    return b"%s %d" % (total[0].encode(), total[1])


app = application(
    "word_count",
    source("lines", line).to(split).key_by(word).to(count).to_sink(sink("totals", total_line)),
)
