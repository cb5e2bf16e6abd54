"""Live feeds: batches that close by time, at moments that the conductor chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Messages, Scenario

_SUM = "bettong.scenarios.applications.running_sum:app"
_MERGED = "bettong.scenarios.applications.running_sum_merged:app"


def amounts(count: int) -> bytes:
    """So many numbers of two keys."""
    return b"\n".join(b"%s,%d" % (b"odd" if n % 2 else b"even", n) for n in range(1, count + 1))


def merged(count: int, corrections: int) -> Messages:
    """So many numbers, and so many more of another stream, of the same two keys."""
    more = amounts(corrections).split(b"\n") if corrections else []
    return {"amounts": amounts(count).split(b"\n"), "corrections": [m + b"00" for m in more]}


TRICKLE = Scenario(
    "live_trickle",
    "one stream that trickles: batches of 2, 1 and 2 messages, and the rest when it has ended",
    _SUM,
    lambda: amounts(7),
    stream="amounts",
    batch=4,
    moments=({"amounts": 2}, {"amounts": 3}, {"amounts": 5}),
    frame=1,
)

BURST = Scenario(
    "live_burst",
    "one stream with a burst: batches grow up to the limit, and are small again after it",
    _SUM,
    lambda: amounts(12),
    stream="amounts",
    batch=4,
    moments=({"amounts": 1}, *({"amounts": 10},) * 3, {"amounts": 11}),
    frame=2,
)

SILENT = Scenario(
    "live_silent_stream",
    "two streams of which one says nothing before it ends: it holds nobody up",
    _MERGED,
    lambda: merged(5, 0),
    batch=4,
    moments=({"amounts": 1}, {"amounts": 3}),
    frame=1,
)


def of_one_key(count: int, corrections: int) -> Messages:
    """As many of each stream, all of them of one key: the least in which their order shows."""
    return {
        "amounts": [b"all,%d" % n for n in range(1, count + 1)],
        "corrections": [b"all,%d00" % n for n in range(1, corrections + 1)],
    }


STALL = Scenario(
    "live_stall",
    "two streams of which one stands still for a while: the order in which they meet is noted",
    _MERGED,
    lambda: of_one_key(6, 3),
    batch=4,
    moments=(
        {"amounts": 1, "corrections": 1},
        {"amounts": 3, "corrections": 1},
        {"amounts": 5, "corrections": 2},
    ),
    frame=1,
    partitions=1,
)

FEW_VERSIONS = replace(
    TRICKLE,
    name="live_few_versions",
    title="one stream that trickles: the notes of all but the last batches are removed, as are "
    "versions of the state",
    classes={"protocol": "bettong.scenarios.beside:MergingFiles"},
    versions=2,
)

SCENARIOS: Sequence[Scenario] = (TRICKLE, SILENT, BURST, STALL, FEW_VERSIONS)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
