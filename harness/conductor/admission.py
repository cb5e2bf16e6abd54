"""Who may take a step of a run now, and who has to wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from bettong.harness.conductor.event_log import EventLog, link_pair_of
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import TraceEvent

DRAIN_TIMEOUT = 10.0
RESTART_TIMEOUT = 60.0


class RunRefusedError(BettongError):
    """A step of a process that does not belong to the run any more."""


class StepAdmission:
    """Link pairs that are closed for all but one, nodes that are down, incarnations that are dead.

    Args:
        run: the run's name.
        book: its book.
        changed: notified when anything does; it guards the book and this.
        over: whether nobody may wait any longer.
    """

    def __init__(
        self, run: str, book: EventLog, changed: threading.Condition, over: Callable[[], bool]
    ) -> None:
        self._run = run
        self._book = book
        self._changed = changed
        self._over = over
        self._closed: dict[frozenset[str], int] = {}
        self._down: Counter[str] = Counter()
        self._returned: dict[str, int] = {}
        self._dead: dict[str, int] = {}
        self._spared: set[tuple[str, int]] = set()
        self.ended = False

    def refuse_the_dead(self, event: TraceEvent) -> None:
        """Raise RunRefusedError for a process that must not go on."""
        if self.ended:
            raise RunRefusedError(f"run {self._run} is over")
        if self.is_dead(event.node, event.incarnation):
            raise RunRefusedError(f"incarnation {event.incarnation} of {event.node} is dead")

    def is_dead(self, node: str, incarnation: int) -> bool:
        """Whether this incarnation was killed, or is older than one that was."""
        killed = incarnation <= self._dead.get(node, 0)
        return killed and (node, incarnation) not in self._spared

    def admit(self, connection_id: int, event: TraceEvent) -> None:
        """Wait until the step may begin; raises RunRefusedError when it never may."""
        if event.link is None:
            return
        if self._down:
            # How often a client asks a node in vain until it is back is a matter of the clock.
            asked = event.link.partition("->")[2]
            self._changed.wait_for(lambda: self._over() or asked not in self._down, RESTART_TIMEOUT)
            self.refuse_the_dead(event)
        if self._closed:
            link_pair = link_pair_of(event.link)
            self._changed.wait_for(
                lambda: self._over() or self._closed.get(link_pair, connection_id) == connection_id,
                DRAIN_TIMEOUT,
            )
            self.refuse_the_dead(event)

    @property
    def all_back(self) -> bool:
        """Whether no node is down that is to come back."""
        return not self._down

    def goes_down(self, node: str) -> None:
        """Who asks this node waits until it is back."""
        self._down[node] += 1

    def is_back(self, node: str) -> None:
        """Nobody waits for it any longer."""
        with self._changed:
            self._down -= Counter([node])  # killed again as it came up, it is down still
            self._returned[node] = len(self._book.events)
            self._changed.notify_all()

    def returns(self, event: TraceEvent) -> bool:
        """Wait until the node is back that could not be reached on this event's link; whether it
        has come back since the one that asks last took a step on it. Raises RunRefusedError."""
        asked = (event.link or "").partition("->")[2]
        self._changed.wait_for(lambda: self._over() or asked not in self._down, RESTART_TIMEOUT)
        self.refuse_the_dead(event)
        since = self._book.events[self._returned.get(asked, len(self._book.events)) :]
        tried = any((e.node, e.link) == (event.node, event.link) for e in since)
        return asked in self._returned and asked not in self._down and not tried

    def mark_dead(self, node: str, incarnation: int) -> None:
        """This incarnation and older ones are dead."""
        with self._changed:
            self._dead[node] = max(incarnation, self._dead.get(node, 0))
            self._book.forget_dead(self.is_dead)

    def exempt(self, node: str, at: TraceEvent | None) -> None:
        """The present incarnation lives beside those that follow, whatever becomes of these."""
        with self._changed:
            own = at.incarnation if at and at.node == node else self._book.incarnation(node)
            self._spared.add((node, own))

    def close_link_pair(self, connection_id: int, link: str) -> None:
        """Let nobody else use a link, and wait until whoever does has finished."""
        link_pair = link_pair_of(link)
        with self._changed:
            self._closed[link_pair] = connection_id
            self._changed.wait_for(
                lambda: self.ended or not self._book.others_on(link_pair, connection_id),
                DRAIN_TIMEOUT,
            )

    def open_link_pair(self, link: str) -> None:
        """Let all use it again."""
        with self._changed:
            self._closed.pop(link_pair_of(link), None)
            self._changed.notify_all()
