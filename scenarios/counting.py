"""Counting: 5, 10 and 15 are 30, and not 20 or 40, whatever is lost, sent again or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario

NUMBERS = (5, 10, 15, 5, 10, 15)


def numbers() -> bytes:
    """Six numbers that are to be summed."""
    return b"\n".join(b"all,%d" % n for n in NUMBERS)


COUNTING = Scenario(
    "counting",
    "5 + 10 + 15 = 30: six numbers summed in 2 batches",
    "bettong.scenarios.applications.running_sum:app",
    numbers,
    stream="amounts",
    batch=3,
    frame=3,
)

COUNTING_TO_FILES = replace(
    COUNTING,
    name="counting_to_files",
    title="5 + 10 + 15 = 30: six numbers summed in 2 batches, each of which becomes a file",
    outputs="files",
)

COUNTING_TO_ARROW = replace(
    COUNTING,
    name="counting_to_arrow",
    title="sums in 2 batches of Arrow files, of messages in a journal of two segments",
    frame=1,
    outputs="arrow",
    options={"gateway": ("--segment-bytes", "180")},
)

COUNTING_TWO = replace(
    COUNTING,
    name="counting_two",
    title="5 + 10: two batches of one number, small enough for every pair of faults",
    input=lambda: b"all,5\nall,10",
    batch=1,
    frame=1,
    partitions=1,
)

SCENARIOS: Sequence[Scenario] = (COUNTING, COUNTING_TO_FILES, COUNTING_TO_ARROW, COUNTING_TWO)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
