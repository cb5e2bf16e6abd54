"""Word count: running totals of the words of a text, from a sender to a receiver."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Resource, Scenario

APPLICATION = "bettong.scenarios.applications.word_count:app"
TEXT = Resource("bettong.scenarios", "texts/kangaroo.txt")
MANY_MESSAGES = 20_000

WORD_COUNT = Scenario(
    "word_count",
    "running totals of words: 24 lines in 3 batches",
    APPLICATION,
    TEXT.read_bytes,
)


def many_lines() -> bytes:
    """20,000 short lines of the text's words, the same each time."""
    words = TEXT.read_bytes().split()
    drawn = random.Random(0)
    lines = (b" ".join(drawn.choices(words, k=3)) for _ in range(MANY_MESSAGES))
    return b"\n".join(lines)


WORD_COUNT_20000 = Scenario(
    "word_count_20000",
    "running totals of words: 20,000 lines in 10 batches",
    APPLICATION,
    many_lines,
    batch=MANY_MESSAGES // 10,
    frame=100,
)

WORD_COUNT_TO_FILES = replace(
    WORD_COUNT,
    name="word_count_to_files",
    title="running totals of words: 24 lines in 3 batches, each of which becomes a file",
    outputs="files",
)

SCENARIOS: Sequence[Scenario] = (WORD_COUNT, WORD_COUNT_20000, WORD_COUNT_TO_FILES)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
