"""Loss, Duplicate, Reorder, Phantom and Corrupt: expected outputs against those seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bettong.harness.checkers.levels import Judgement, Order, judge, undecided
from bettong.harness.checkers.records import Record, malformed, same
from bettong.lineage.results import Anomaly, Guarantee


def check_outputs(
    expected: Sequence[Record],
    observed: Sequence[Record],
    *,
    order: Order = "per-key",
    expect: Guarantee = "effectively-once",
    also: Sequence[Anomaly] = (),
) -> Judgement:
    """Judge what was seen against what was expected.

    Args:
        expected: each message once, in the order in which it should be seen.
        observed: every occurrence that a reader saw, in the order seen.
        order: which order has to hold: among messages of one key, among all, or none. Messages
            without a key have no order per key.
        expect: the level asked for.
        also: anomalies found otherwise (Torn, StateDivergence, Stuck, Died), judged with these.

    A malformed history is ``unknown``, and so is one in which nothing was expected or seen.
    """
    faults = malformed(expected, observed)
    if faults:
        return undecided(f"the histories cannot be judged: {faults[0]}", faults)
    if not expected and not observed and not also:
        return undecided("nothing was expected and nothing was seen: that proves nothing")
    if order == "per-key" and all(record.key is None for record in expected):
        order = "none"
    return judge([*output_anomalies(expected, observed, order), *also], expect=expect, order=order)


def output_anomalies(
    expected: Sequence[Record], observed: Sequence[Record], order: Order = "per-key"
) -> list[Anomaly]:
    """Every anomaly of well-formed histories (see :func:`malformed`), with its witnesses.

    Occurrences are counted, order is that of first occurrences, so that a batch delivered
    again is a Duplicate of each message and no Reorder. A Reorder is a step back: two messages,
    one right after the other in what was seen of their key, that should be the other way round.
    """
    wanted: dict[str, Record] = {r.id: r for r in expected if r.id is not None}
    places: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(observed):
        if record.id is not None:
            places[record.id].append(place)
    return [
        *_lost(expected, places),
        *_duplicates(wanted, places, observed),
        *_phantoms(wanted, places, observed),
        *_corrupt(wanted, observed),
        *(() if order == "none" else _reordered(expected, places, observed, order == "per-key")),
    ]


def _lost(expected: Sequence[Record], places: dict[str, list[int]]) -> Iterator[Anomaly]:
    by_key: dict[str | None, list[str]] = defaultdict(list)
    for record in expected:
        by_key[record.key].append(str(record.id))
    total = _part_of_each([str(r.id) for r in expected], places)
    within = {key: _part_of_each(ids, places) for key, ids in by_key.items()}
    for record in expected:
        name = str(record.id)
        if name in places:
            continue
        note = loss_note(total[name], within[record.key][name] if record.key is not None else None)
        yield Anomaly("Loss", (name,), record.key, expected=record.value, note=note)


def loss_note(part: str, part_of_key: str | None) -> str:
    """The finer class of a loss: by all messages if they tell, else by those of its key."""
    if part == "whole":
        return "everything lost"
    if part != "middle":
        return f"{part} lost"
    if part_of_key in (None, "middle"):
        return "middle lost"
    return "whole key lost" if part_of_key == "whole" else f"{part_of_key} of its key lost"


def _part_of_each(ids: Sequence[str], places: dict[str, list[int]]) -> dict[str, str]:
    """For each id that is not among the places: prefix, middle, tail or whole."""
    seen = [i for i, name in enumerate(ids) if name in places]
    if not seen:
        return dict.fromkeys(ids, "whole")
    return {
        name: "prefix" if i < seen[0] else "tail" if i > seen[-1] else "middle"
        for i, name in enumerate(ids)
        if name not in places
    }


def _duplicates(
    wanted: dict[str, Record], places: dict[str, list[int]], observed: Sequence[Record]
) -> Iterator[Anomaly]:
    for name, at in places.items():
        if len(at) < 2 or name not in wanted:
            continue
        adjacent = all(b - a == 1 for a, b in pairwise(at))
        batches = [observed[i].batch for i in at]
        yield Anomaly(
            "Duplicate",
            (name,),
            wanted[name].key,
            expected={"times": 1},
            seen={"times": len(at), "places": at[:10]},
            note=("adjacent" if adjacent else "distant") + in_batches(batches),
        )


def in_batches(batches: Sequence[object]) -> str:
    """In which batches records were seen, as the end of a note; nothing when that is not known."""
    known = list(dict.fromkeys(str(b) for b in batches if b is not None))
    if not known:
        return ""
    if len(known) == 1:
        return f", within batch {known[0]}"
    return f", across batches {', '.join(known[:5])}"


def _phantoms(
    wanted: dict[str, Record], places: dict[str, list[int]], observed: Sequence[Record]
) -> Iterator[Anomaly]:
    for name, at in places.items():
        if name not in wanted:
            first = observed[at[0]]
            note = None if len(at) == 1 else f"seen {len(at)} times"
            yield Anomaly("Phantom", (name,), first.key, seen=first.value, note=note)


def _corrupt(wanted: dict[str, Record], observed: Sequence[Record]) -> Iterator[Anomaly]:
    for place, record in enumerate(observed):
        right = wanted.get(str(record.id))
        if right is None:
            continue
        if record.key != right.key:
            yield Anomaly(
                "Corrupt",
                (str(record.id),),
                right.key,
                expected={"key": right.key, "value": right.value},
                seen={"key": record.key, "value": record.value},
                note=f"the key differs, at place {place}",
            )
        elif not same(record.value, right.value):
            yield Anomaly(
                "Corrupt",
                (str(record.id),),
                right.key,
                expected=right.value,
                seen=record.value,
                note=f"the content differs, at place {place}",
            )


def _reordered(
    expected: Sequence[Record],
    places: dict[str, list[int]],
    observed: Sequence[Record],
    per_key: bool,
) -> Iterator[Anomaly]:
    by_key: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
    for rank, record in enumerate(expected):
        at = places.get(str(record.id))
        if at and not (per_key and record.key is None):
            by_key[record.key if per_key else None].append((at[0], rank))
    for arrivals in by_key.values():
        arrivals.sort()
        for (place_a, rank_a), (place_b, rank_b) in pairwise(arrivals):
            if rank_a > rank_b:
                late, early = expected[rank_b], expected[rank_a]
                batches = observed[place_a].batch, observed[place_b].batch
                yield Anomaly(
                    "Reorder",
                    (str(late.id), str(early.id)),
                    late.key if late.key == early.key else None,
                    expected=[late.id, early.id],
                    seen=[early.id, late.id],
                    note=f"at places {place_a} and {place_b}{in_batches(batches)}",
                )
