"""What a reader of a sink finds there, also where some of it cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bettong.lineage.results import Anomaly

_SHOWN = 200

Row = Mapping[str, Any]


def parse_rows(lines: Iterable[bytes], sink: str, unreadable: list[Anomaly]) -> Iterator[Row]:
    """The rows that lines of JSON stand for.

    Args:
        lines: with their line ends.
        sink: where they are.
        unreadable: takes an anomaly for each line that is no row: ``Torn`` for one that breaks
            off, else ``Corrupt``; and one when the lines themselves cannot be read on.
    """
    place = 0
    try:
        for place, line in enumerate(lines, 1):
            row = _parse(line)
            if row is not None:
                yield row
            else:
                unreadable.append(_unreadable(line, sink, place))
    except (OSError, ValueError) as e:
        what = f"what follows row {place} of {sink} cannot be read: {e}"
        unreadable.append(Anomaly("Corrupt", expected="rows", seen=str(e)[:_SHOWN], note=what))


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    whole = line.endswith(b"\n") and isinstance(row, dict)
    return row if whole and isinstance(row.get("id"), str) and row["id"] else None


def _unreadable(line: bytes, sink: str, place: int) -> Anomaly:
    torn = not line.endswith(b"\n")
    what = "breaks off" if torn else "is no row with an id"
    return Anomaly(
        "Torn" if torn else "Corrupt",
        expected="a row: an object of JSON with an id",
        seen=line[:_SHOWN].decode("utf-8", "replace"),
        note=f"line {place} of {sink} {what}",
    )
