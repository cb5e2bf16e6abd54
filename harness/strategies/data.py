"""Hypothesis strategies for Bettong's own kinds of data: messages, keyed streams, pipelines,
histories with planted anomalies, fault schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from bettong.harness.checkers.records import Record
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import (
    Crash,
    Cut,
    Delay,
    Duplicate,
    Omit,
    OmitReply,
    Pause,
    Silence,
    Stop,
    Storage,
)
from bettong.harness.faults.point import SERVERS, Point, Topology
from bettong.harness.faults.schedule import Schedule
from bettong.harness.strategies.pipelines import numbers, pipelines
from bettong.lineage.results import AnomalyKind

__all__ = [
    "PlantedHistory",
    "fault_schedules",
    "faults",
    "interleavings",
    "keyed_streams",
    "keys",
    "messages",
    "numbers",
    "pipelines",
    "planted_histories",
    "points",
]


@dataclass(frozen=True, slots=True)
class PlantedHistory:
    """Two histories that differ in exactly the anomalies named.

    Attributes:
        expected: each message once.
        observed: what a reader saw.
        planted: (kind, message ids) of each anomaly, sorted; those of a Reorder are the two
            messages in the expected order.
    """

    expected: tuple[Record, ...]
    observed: tuple[Record, ...]
    planted: tuple[tuple[AnomalyKind, tuple[str, ...]], ...]


def messages(max_size: int = 200) -> st.SearchStrategy[bytes]:
    """Payloads: text lines, empty ones, line ends and NUL within, bytes that are not UTF-8."""
    text = st.text(max_size=max_size // 4).map(str.encode)
    return st.one_of(
        text, st.binary(max_size=max_size), st.sampled_from([b"", b"\n", b"\0", b"\r\n"])
    )


def keys() -> st.SearchStrategy[str]:
    """Keys: short words, so that they meet again, and awkward ones."""
    return st.one_of(st.sampled_from("abcde"), st.sampled_from(["", " ", "ключ", "a\n", "🔑"]))


@st.composite
def keyed_streams(
    draw: st.DrawFn, min_size: int = 0, max_size: int = 40, values: Any = None
) -> tuple[Record, ...]:
    """A stream of messages ``in/0``, ``in/1`` … with keys and values."""
    content = st.integers(0, 9) if values is None else values
    pairs = draw(st.lists(st.tuples(keys(), content), min_size=min_size, max_size=max_size))
    return tuple(Record(f"in/{n}", key, value) for n, (key, value) in enumerate(pairs))


@st.composite
def interleavings(draw: st.DrawFn, stream: tuple[Record, ...]) -> tuple[Record, ...]:
    """The stream in another order that keeps the order of each key."""
    queues: dict[str | None, list[Record]] = {}
    for record in stream:
        queues.setdefault(record.key, []).append(record)
    turns = draw(st.permutations([record.key for record in stream]))
    heads = {key: iter(queue) for key, queue in queues.items()}
    return tuple(next(heads[key]) for key in turns)


@st.composite
def planted_histories(
    draw: st.DrawFn, max_size: int = 30, max_anomalies: int = 6
) -> PlantedHistory:
    """Histories of a keyed stream with losses, duplicates, reorders (within a key), phantoms and
    corrupt contents planted; often with none at all."""
    expected = draw(keyed_streams(min_size=1, max_size=max_size))
    observed = list(draw(interleavings(expected)))
    planted: list[tuple[AnomalyKind, tuple[str, ...]]] = []
    kinds = draw(
        st.lists(
            st.sampled_from(["Loss", "Duplicate", "Reorder", "Phantom", "Corrupt"]),
            max_size=max_anomalies,
        )
    )
    free = [str(r.id) for r in draw(st.permutations(expected))]
    for kind in ("Loss", "Corrupt"):
        for _ in range(kinds.count(kind)):
            if free:
                name = free.pop()
                at = next(i for i, r in enumerate(observed) if r.id == name)
                if kind == "Loss":
                    del observed[at]
                else:
                    observed[at] = replace(observed[at], value=["not", observed[at].value])
                planted.append((kind, (name,)))
    for _ in range(kinds.count("Reorder")):
        pairs = [(a, b) for a, b in _neighbours(observed) if {a.id, b.id} <= set(free)]
        if pairs:
            a, b = draw(st.sampled_from(pairs))
            i, j = observed.index(a), observed.index(b)
            observed[i], observed[j] = b, a
            free = [name for name in free if name not in (a.id, b.id)]
            planted.append(("Reorder", (str(a.id), str(b.id))))
    for _ in range(kinds.count("Duplicate")):
        if free:
            name = free.pop()
            at = next(i for i, r in enumerate(observed) if r.id == name)
            observed.insert(draw(st.integers(at + 1, len(observed))), observed[at])
            planted.append(("Duplicate", (name,)))
    for n in range(kinds.count("Phantom")):
        record = Record(f"nowhere/{n}", draw(keys()), draw(st.integers(0, 9)))
        observed.insert(draw(st.integers(0, len(observed))), record)
        planted.append(("Phantom", (f"nowhere/{n}",)))
    return PlantedHistory(expected, tuple(observed), tuple(sorted(planted)))


WORD_COUNT = Topology(
    ("sender", "gateway", "driver", "receiver"),
    ("sender->gateway", "driver->gateway", "driver->receiver"),
)


def points(batches: int = 3) -> st.SearchStrategy[Point]:
    """Moments of the driver's steps in the first batches."""
    names = ("offsets", "state.manifest", "sink.commit", "commits", "source.commit")
    steps = st.builds("batch={}/{}".format, st.integers(0, batches - 1), st.sampled_from(names))
    return st.builds(Point, steps, st.sampled_from(["before", "after"]), st.integers(1, 2))


def faults(topology: Topology = WORD_COUNT, batches: int = 3) -> st.SearchStrategy[Fault]:
    """Any one fault on these nodes and links."""
    nodes, links = st.sampled_from(topology.nodes), st.sampled_from(topology.links)
    at = points(batches)
    sides = st.permutations(topology.nodes).map(lambda names: ((names[0],), (names[1],)))
    on_links = at.map(lambda point: Point(point.step, "before", point.occurrence))
    spans = st.tuples(at, at).filter(lambda span: span[1].may_follow(span[0]))
    servers = [node for node in topology.nodes if node in SERVERS]
    return st.one_of(
        st.builds(Crash, nodes, at, st.booleans()),
        st.builds(Stop, st.sampled_from(servers), at) if servers else st.nothing(),
        st.builds(Omit, links, on_links),
        st.builds(OmitReply, links, on_links),
        st.builds(Silence, links, on_links),
        st.builds(Delay, links, on_links, st.integers(1, 500)),
        st.builds(Duplicate, links, on_links),
        st.builds(Storage, at, st.sampled_from(["ENOSPC", "EIO"])),
        st.builds(lambda node, span: Pause(node, *span), nodes, spans),
        st.builds(
            lambda span, ends: Pause("driver", span[0], span[1] if ends else None, True),
            spans,
            st.booleans(),
        ),
        st.builds(lambda pair, span: Cut(*pair, *span), sides, spans),
    )


def fault_schedules(
    topology: Topology = WORD_COUNT, batches: int = 3, max_faults: int = 3
) -> st.SearchStrategy[Schedule]:
    """Schedules of different faults, the empty one too."""
    one = faults(topology, batches)
    several = st.lists(one, max_size=max_faults, unique_by=lambda fault: fault.id)
    return several.map(lambda chosen: Schedule(tuple(chosen)))


def _neighbours(observed: list[Record]) -> list[tuple[Record, Record]]:
    last: dict[str | None, Record] = {}
    found = []
    for record in observed:
        if record.key in last:
            found.append((last[record.key], record))
        last[record.key] = record
    return found
