"""How long clients go on before they give up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from bettong.harness.queries.run.polled_lock import PolledLocks

PATIENCE_S = 12.0
"""How long a fault lasts that ends when a client gives up, where it is known not to."""
LONG_S = 65.0
"""How long it lasts where that is not known: a time-out of 30 or 60 s is a common one, and five
tries of which each waits twice as long as the one before take half a minute."""
STANDS_STILL, UNHEARD = "it stands still", "nothing is heard"


@dataclass
class Clients:
    """Those of one query, in all its runs, on whatever lane.

    Attributes:
        endless: what they have not given up in a long time: what went wrong, and the endpoint.
        locks: for which they ask again and again.
    """

    endless: set[tuple[str, str]] = field(default_factory=set)
    locks: PolledLocks = field(default_factory=PolledLocks)
    _told: list[tuple[tuple[str, str], Callable[[], object]]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def patience_s(self, what: str, endpoint: str) -> float:
        """How long it goes wrong at most."""
        return PATIENCE_S if (what, endpoint) in self.endless else LONG_S

    def tell(self, what: str, endpoint: str, known: Callable[[], object]) -> None:
        """Call ``known`` when a run on another lane has shown that they do not give this up."""
        with self._lock:
            self._told.append(((what, endpoint), known))

    def tell_no_more(self, known: Callable[[], object]) -> None:
        """That run has come to its end."""
        with self._lock:
            self._told = [told for told in self._told if told[1] != known]

    def not_given_up(self, what: str, endpoint: str, silent: bool) -> None:
        """It went wrong so long, and they have not given up. ``silent``: they have sent nothing
        meanwhile, made no connection and closed none. Whether the server stands still, or only
        their connection is silent, they could have learned by that alone: the other silence would
        have been the same to them.
        """
        with self._lock:
            self.endless.add((what, endpoint))
            if silent and what == STANDS_STILL:
                self.endless.add((UNHEARD, endpoint))
            known = [call for about, call in self._told if about in self.endless]
        for call in known:
            call()
