"""Whether drivers come on."""

from __future__ import annotations

from collections import Counter

from bettong.lineage.trace import TraceEvent

_OFTEN = 100


class Progress:
    """Who does the same with the same file again and again while nothing durable changes, such as
    ask for a lock that nobody gives back, does not come on, though each time is a step."""

    def __init__(self) -> None:
        self._durable = ""
        self._done = Counter[tuple[object, ...]]()

    def comes_on(self, event: TraceEvent, durable: str) -> bool:
        """Whether a step is one that a driver comes on by, given a digest of what is durable."""
        detail = event.detail
        operation = detail.get("op")
        if operation is None or durable != self._durable:
            self._durable = durable
            self._done.clear()
        done = (event.incarnation, operation, detail.get("path"), detail.get("sql"))
        self._done[done] += 1
        return self._done[done] <= _OFTEN
