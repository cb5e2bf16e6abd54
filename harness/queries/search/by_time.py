"""Whether what a query puts out may hang on the time at which it does so: a replay that comes on
another day is tried early then."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.sense import days_in
from bettong.harness.queries.sink.ran_lines import RanLine

_ASKS = re.compile(
    r"\b(?:now|utcnow|today|time|time_ns|gmtime|localtime|ctime|asctime|strftime|unix_timestamp"
    r"|current_(?:date|time|timestamp)|CURRENT_(?:DATE|TIME|TIMESTAMP)|NOW)\b"
)


def goes_by_time(run: QueryRun, today: datetime) -> bool:
    """Whether files, rows or requests of a run without faults name a day around this one, or a line
    of the user's code that began asks for the time. Rows that are of this day by themselves cost
    nothing but a place in the order."""
    return bool(days_in(_texts(run), today)) or asks_for_time(run.ran)


def asks_for_time(ran: Iterable[RanLine]) -> bool:
    """Whether any of these lines does."""
    lines = sorted(ran)
    for file in {line.file for line in lines}:
        linecache.checkcache(file)
    return any(_ASKS.search(linecache.getline(line.file, line.number)) for line in lines)


def _texts(run: QueryRun) -> Iterator[str]:
    """What names a day where what is put out goes by it."""
    yield from (str(event.detail.get("path", "")) for event in run.events if "op" in event.detail)
    yield from (str(value) for row in run.rows for value in row.values())
    yield from (request.label for request in run.recording.requests)
