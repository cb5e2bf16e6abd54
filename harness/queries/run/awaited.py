"""Code that waits for its query to end, as a script does, instead of returning it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

_RETURNS_S = 2.0
"""Code that does not wait has returned its query by then, or does no harm if it comes later."""
_LOOK_S = 0.2


@contextlib.contextmanager
def ended_when_done(
    streams: StreamingQueryManager,
    before: Collection[Any],
    goes_on: Callable[[StreamingQuery], bool | None],
    returns_s: float = _RETURNS_S,
) -> Iterator[dict[str, Any]]:
    """While the user's code is under way: what it starts and does not return is stopped when it has
    nothing left to do, or is too much to be judged, so that the code goes on; and so is what it
    starts after that, as code does that starts a query again that has failed.

    Args:
        before: the runs of queries that were there already.
        goes_on: waits until a query has nothing left to do, and says where that never comes.
        returns_s: so long nothing is done.

    Yields what was seen of it, as facts of the run.
    """
    returned, seen = threading.Event(), dict[str, Any]()

    def end() -> None:
        known, wait = set(before), returns_s
        while not returned.wait(wait):
            wait = _LOOK_S
            with contextlib.suppress(Exception):  # who waits for it hears of it too
                started = [x for x in streams.active if x.runId not in known]
                known.update(x.runId for x in started)
                if started:
                    seen["queries"] = max(len(started), seen.get("queries", 0))
                if len(started) == 1:
                    seen["endless"] = bool(goes_on(started[0]))
                for query in started:
                    query.stop()

    threading.Thread(target=end, name="awaited", daemon=True).start()
    try:
        yield seen
    finally:
        returned.set()
