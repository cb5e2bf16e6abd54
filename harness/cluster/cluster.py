"""The nodes and links of one run together: what faults act upon."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from bettong.engine.storage.disk_log import account, lose
from bettong.engine.storage.durability import Keep
from bettong.harness.cluster.links import Links
from bettong.harness.cluster.nodes import Node, NodeError, last_words
from bettong.harness.cluster.repeater import Repeaters
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Storage
from bettong.harness.faults.step_ids import NODE_START, StepId
from bettong.lineage.trace import TraceEvent

MOST_RESTARTS = 5


def _fails_start(fault: Fault) -> bool:
    """Whether it has a server's disk fail while that opens what is on it."""
    return isinstance(fault, Storage) and StepId.parse(fault.at.step).starts


class Cluster:
    """An :class:`~bettong.harness.faults.actuator.Actuator`, and the supervisor of the nodes.

    Attributes:
        control: the book of the run, set before the first node is started.
        lasting: nodes that are there before the run and stay after it.
        starting: nodes that are being started, which may take its time.
        restarts: how often each node has been started again after it ended by itself.
        zombies: nodes that stood still and were taken for dead: others have their names.
        repeaters: deliver what a fault wants to come twice.
        accounts: folder where each node keeps account of what it has not made durable yet, if any
            does.
    """

    accounts: Path | None = None

    def __init__(self, links: Links, lasting: Mapping[str, Node]) -> None:
        self.control: RunControl
        self.nodes: dict[str, Node] = dict(lasting)
        self.lasting = frozenset(lasting)
        self.links = links
        self.starting: list[str] = []
        self.restarts: dict[str, int] = {}
        self.zombies: list[Node] = []
        self.repeaters = Repeaters()
        self._failed_starts: set[str] = set()
        self._resumed: list[Node] = []
        self._paused: set[str] = set()
        self._wanted: set[str] = set(lasting)

    def start(self, name: str) -> None:
        """Start a node as its next incarnation."""
        node = self.nodes[name]
        self.starting.append(name)
        # Wanted before it starts: its first step, and a crash there, may come before we go on here.
        self._wanted.add(name)
        try:
            while not self._comes_up(node):
                pass
        except BaseException:
            self._wanted.discard(name)
            raise
        finally:
            self.starting.remove(name)

    def _comes_up(self, node: Node) -> bool:
        """Whether a node that is started comes up; one whose disk has failed meanwhile does not,
        and is to be started again."""

        def begins(incarnation: int) -> None:
            event = TraceEvent(
                f"{NODE_START}{node.name}", "after", node.name, incarnation=incarnation
            )
            self.control.note(event)

        try:
            node.start(begins)
        except NodeError:
            failed = {
                injected.fault.id
                for injected in self.control.injected
                if injected.node == node.name and _fails_start(injected.fault)
            }
            if failed <= self._failed_starts:
                raise
            self._failed_starts |= failed
            return False
        return True

    def restart(self, name: str) -> None:
        """Start a node again, beside itself if it stands still: it has been taken for dead."""
        if name in self._paused:
            self._wanted.discard(name)
            self.zombies.append(self.nodes[name])
            self.nodes[name] = self.nodes[name].successor()
        self.start(name)

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        """SIGKILL a node and reap it. One that asks others, and has just ended with all its work
        done, is as dead at this moment as one that was killed, and is started again like it."""
        self._wanted.discard(node)
        self._paused.discard(node)
        incarnation, ended = self.nodes[node].crash()
        if ended is None:
            return incarnation, InjectionOutcome(False, f"{node} was not running")
        done = ended.status == 0 and not self.nodes[node].listens
        return incarnation, InjectionOutcome(done or ended.status == -signal.SIGKILL, str(ended))

    def stop(self, node: str) -> tuple[int, InjectionOutcome]:
        self._wanted.discard(node)
        self._paused.discard(node)
        incarnation, ended = self.nodes[node].stop()
        return incarnation, InjectionOutcome(ended is not None, str(ended or "it was not running"))

    def cut_power(self, node: str, keep: Keep) -> tuple[int, InjectionOutcome]:
        incarnation, outcome = self.crash(node)
        lost = [] if self.accounts is None else lose(account(self.accounts, node), keep)
        evidence = f"{outcome.evidence}; lost: {', '.join(lost) or 'nothing'}"
        return incarnation, InjectionOutcome(outcome.fired, evidence)

    def pause(self, node: str) -> InjectionOutcome:
        outcome = self.nodes[node].pause()
        if outcome.fired:
            self._paused.add(node)
        return outcome

    def resume(self, node: str) -> str:
        self._paused.discard(node)
        zombies = [zombie for zombie in self.zombies if zombie.name == node]
        for paused in zombies or [self.nodes[node]]:
            paused.resume()
        if not zombies:
            return "resumed"
        self._resumed += zombies
        return f"resumed beside incarnation {self.nodes[node].incarnation}, which runs since"

    @property
    def paused(self) -> frozenset[str]:
        """Nodes that stand still."""
        return frozenset(self._paused)

    def has_live_zombies(self) -> bool:
        """Whether a node that was taken for dead, and goes on, has not ended yet."""
        return any(zombie.poll() is None for zombie in self._resumed)

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        if disturbance.strands:
            self.repeaters.watch(fault, link)
        return self.links.disturb(fault, link, disturbance)

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        return self.links.partition(fault, left, right, direction)

    def repeat(self, fault: str, link: str) -> str:
        return self.repeaters.repeat(fault, link)

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        if self.repeaters.repeats(fault):
            return self.repeaters.deliver(fault, step_failed)
        self.repeaters.strand(fault)
        return self.links.heal(fault, step_failed)

    def ended(self) -> dict[str, int]:
        """Nodes that ended by themselves, with their exit status."""
        found = {}
        for name in sorted(self._wanted):
            node = self.nodes[name]
            incarnation = node.incarnation
            if name in self.starting:
                continue  # what is asked until it has started may tell of the one before
            status = node.poll()
            # Killed meanwhile, it is not wanted; started again since, or about to be, it is another
            # one. A start says so by `starting`, then `_wanted`, then the number: hence this order.
            if status is None or name not in self._wanted or name in self.starting:
                continue
            if node is self.nodes[name] and node.incarnation == incarnation:
                found[name] = status
        return found

    def speakers(self) -> list[Node]:
        """The running nodes of the run that begin by themselves, and so take steps unasked."""
        wanted = (self.nodes[name] for name in self._wanted - self.lasting)
        return [node for node in wanted if not node.listens]

    def forget(self, name: str) -> None:
        """The node has done its work; that it ended is right."""
        self._wanted.discard(name)

    def supervise(self, name: str) -> None:
        """Start a node again that ended by itself, as an operator's supervisor would.

        Raises NodeError when it has done so too often.
        """
        self.restarts[name] = self.restarts.get(name, 0) + 1
        if self.restarts[name] > MOST_RESTARTS:
            log = last_words(self.nodes[name].log)
            raise NodeError(f"{name} has ended by itself {self.restarts[name]} times: {log}")
        self.start(name)

    def close(self) -> None:
        """Kill every node of the run and end every fault."""
        self._wanted.clear()
        for node in (*self.nodes.values(), *self.zombies):
            if node.name not in self.lasting:
                node.kill()
        self.links.mend()
        self.repeaters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
