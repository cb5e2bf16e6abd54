"""The way of one run to its end: waits until all is done, and looks after the nodes meanwhile.

A node that ends by itself is started again, as an operator's supervisor would; unless what has
hit it lets it end (:mod:`bettong.harness.runs.contracts`), that is an anomaly. One that does
not come back leaves the run ``Stuck``, with its own last words.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from bettong.engine.ingest.sender import LOST
from bettong.harness.checkers import died
from bettong.harness.cluster.layout import Layout
from bettong.harness.cluster.nodes import NodeError, last_words
from bettong.harness.cluster.scenario_cluster import RunCluster
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.processes.patience import patience
from bettong.harness.runs.contracts import Excuses, is_fenced, last_beside_another
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent

_LOOK_S = 0.05
_AT_WORK = 10
"""So many times as long is waited for a node that is at work by itself."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run counts as stuck. Seconds are those of a machine without other work.

    Attributes:
        idle_s: seconds in which nothing happens.
        wall_s: seconds in all.
        repeats: steps taken again without any new one between.
        times: that one step is taken.
        still_s: seconds in which nothing happens after which all others wait for a node that
            stands still, unless one of them is at work.
        until: the moment of the monotonic clock, in seconds, at which the budget is over: no run
            goes on after it, nor says anything.
    """

    idle_s: float = 60.0
    wall_s: float = 300.0
    repeats: int = 1000
    times: int = 256
    still_s: float = 1.5
    until: float = math.inf

    @property
    def over(self) -> bool:
        """Whether the budget is over."""
        return time.monotonic() >= self.until


class StuckError(Exception):
    """The run does not end; the text says why."""


class BlindError(Exception):
    """The run cannot be judged: a fault could not be put in force, or there is no time; the text
    says why."""


class Course:
    """The way of one run to its end.

    Attributes:
        notes: what went on besides.
        died: an anomaly for each node that ended although nothing excuses that.
        sender_failed: a sender says that the gateway has lost what it had acknowledged.
    """

    def __init__(
        self,
        cluster: RunCluster,
        control: RunControl,
        layout: Layout,
        senders: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self.notes: list[str] = []
        self.died: dict[str, Anomaly] = {}
        self.sender_failed = False
        self._cluster = cluster
        self._layout = layout
        self._control = control
        self._limits = limits
        self._excuses = Excuses()
        self._began = time.monotonic()
        self._senders = {node: stream for stream, node in senders.items()}
        self._sending = set(self._senders)

    @property
    def all_sent(self) -> bool:
        """Whether every sender has been told that all its messages are safe."""
        return not self._sending

    def begin(self) -> None:
        """Start every node. Raises StuckError when one does not start after a fault has fired,
        BettongError when one does not without any, BlindError when there is no time."""
        try:
            self._check_budget()
            self._cluster.begin(self._control)
        except NodeError as e:
            self._check_budget()
            if not self._control.injected:
                raise
            raise StuckError(str(e)) from e

    def until_drained(self) -> None:
        """Wait until the senders and the query have done all their work; raises StuckError."""
        while not self._is_over():
            if self.sender_failed and self._control.idle_seconds > 1.0:
                self.notes.append("the sender gave up; what was accepted has been waited for")
                return
            if self._stands_still():
                self._control.wake(drained=False)
            self._check_limits()
            self._control.wait(_LOOK_S)
        self._cluster.forget("driver")

    def again(self) -> None:
        """Start every node once more when all is done and the servers were killed, as after a
        reboot: each comes up, finds what was there, and changes nothing. The driver does its
        last batch again."""
        self._control.note(TraceEvent(self._cluster.undo_last_commit(), "after", "driver"))
        try:
            self._cluster.start_again(self._control)
        except NodeError as e:
            raise StuckError(str(e)) from e
        self.until_drained()

    def replay(self) -> None:
        """Have the last batch done once more, as after a crash right before its commit."""
        self._control.note(TraceEvent(self._cluster.undo_last_commit(), "after", "driver"))
        try:
            self._cluster.start("driver")
        except NodeError as e:
            raise StuckError(str(e)) from e
        self.until_drained()

    def _is_over(self) -> bool:
        """Whether nobody is at work, also when what has become of each node was looked at after
        that: one may have come to its end as it was started again."""
        at_work = self._at_work() or self._control.wake()
        self._look_after()
        return not (at_work or self._at_work())

    def _at_work(self) -> bool:
        drained = self._cluster.nodes["driver"].poll() == 0
        coming = not self._control.all_back  # a reader sees what a server has when it is back
        return self._someone_sends() or not drained or coming or self._cluster.has_live_zombies()

    def _someone_sends(self) -> bool:
        """Whether a sender has not come to its end, or was started again after it, by a fault."""
        running = (self._cluster.nodes[name].poll() is None for name in self._senders)
        return bool(self._sending) or any(running)

    def _look_after(self) -> None:
        failure = self._control.failure
        if isinstance(failure, NodeError):
            raise StuckError(str(failure)) from failure
        if isinstance(failure, BettongError):
            raise BlindError(f"a fault could not be put in force: {failure}") from failure
        if failure is not None:
            raise failure
        for name, status in self._cluster.ended().items():
            if name in self._senders and status == 0:
                self._sending.discard(name)
                self._cluster.forget(name)
            elif name == "driver" and status == 0:
                continue
            elif name in self._senders and status == LOST and self._knows_of_loss(name):
                self.sender_failed = True
                self._cluster.forget(name)
            else:
                self._has_died(name, status)

    def _knows_of_loss(self, name: str) -> bool:
        """Whether a sender has noted that the gateway has lost messages."""
        try:
            outcome = json.loads(self._layout.outcome(self._senders[name]).read_text())
            self.notes.append(str(outcome["error"]))
        except (OSError, ValueError, TypeError, KeyError):
            return False
        return True

    def _has_died(self, name: str, status: int) -> None:
        node, events = self._cluster.nodes[name], self._control.events
        words, last = last_words(node.log), self._control.last_steps().get(name)
        own = last_beside_another(events, name, node.incarnation)
        if own is not None:
            words, last = own.detail.get("error", words), f"{own.phase} {own.step}"
        fenced = is_fenced(events, name, node.incarnation)
        excused = self._excuses.why(name, status, self._control.injected, fenced, words)
        why = f": {excused}" if excused else ""
        self.notes.append(f"{name} ended with status {status} and was started again{why}")
        if not excused:
            self.died.setdefault(name, died(name, status, words, last))
        try:
            self._cluster.supervise(name)
        except NodeError as e:
            raise StuckError(str(e)) from e

    def _stands_still(self) -> bool:
        """Whether nobody goes on, and nobody is about to take its first step. One that is at a step
        of its own, such as a write, is waited for longer than one that may wait for an answer."""
        at_work = self._control.at_work() - self._cluster.paused
        still_s = self._limits.still_s * (_AT_WORK if at_work else 1)
        return (
            self._control.idle_seconds > patience(still_s)
            and not self._cluster.starting
            and all(
                self._control.has_spoken(node.name, node.incarnation)
                for node in self._cluster.speakers()
            )
        )

    def _check_budget(self) -> None:
        if self._limits.over:
            raise BlindError("the budget ended within this run")

    def _check_limits(self) -> None:
        self._check_budget()
        idle = self._control.idle_seconds
        if idle > patience(self._limits.idle_s) and not self._cluster.starting:
            raise StuckError(f"nothing happened for more than {self._limits.idle_s:g} s")
        if self._control.repeats > self._limits.repeats:
            raise StuckError(f"{self._control.repeats} steps without a new one")
        if self._control.most_taken > self._limits.times:
            raise StuckError(f"one step was taken more than {self._limits.times} times")
        took = time.monotonic() - self._began
        if took > patience(self._limits.wall_s):
            raise StuckError(f"not done after {self._limits.wall_s:g} s and more")
