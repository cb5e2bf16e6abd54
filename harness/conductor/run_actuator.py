"""What the faults of one run act through: the actuator, and who may go on."""

from __future__ import annotations

from bettong.engine.storage.durability import Keep
from bettong.harness.conductor.admission import StepAdmission
from bettong.harness.faults.actuator import Actuator, Direction, Disturbance, InjectionOutcome
from bettong.lineage.trace import TraceEvent


class AdmittingActuator:
    """A :class:`~bettong.harness.faults.actuator.RunActuator` that keeps processes from going on
    which a fault has taken away.

    Attributes:
        to_restart: nodes that are to come back, each once.
    """

    def __init__(
        self, actuator: Actuator, admission: StepAdmission, step: TraceEvent | None = None
    ) -> None:
        self.to_restart: dict[str, None] = {}
        self._killed: set[str] = set()
        self._actuator = actuator
        self._admission = admission
        self._step = step

    @property
    def node(self) -> str:
        return "" if self._step is None else self._step.node

    @property
    def link(self) -> str | None:
        return None if self._step is None else self._step.link

    def crash(self, node: str, restart: bool) -> InjectionOutcome:
        if restart:
            self._goes_down(node)
        return self._killed_by(node, *self._actuator.crash(node))

    def stop(self, node: str) -> InjectionOutcome:
        self._goes_down(node)
        return self._killed_by(node, *self._actuator.stop(node))

    def cut_power(self, node: str, keep: Keep) -> InjectionOutcome:
        self._goes_down(node)
        return self._killed_by(node, *self._actuator.cut_power(node, keep))

    def pause(self, node: str, replace: bool) -> InjectionOutcome:
        outcome = self._actuator.pause(node)
        if replace and outcome.fired:
            self._admission.exempt(node, self._step)
            self.to_restart[node] = None
        return outcome

    def resume(self, node: str) -> str:
        return self._actuator.resume(node)

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        return self._actuator.disturb(fault, link, disturbance)

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        return self._actuator.partition(fault, left, right, direction)

    def repeat(self, fault: str, link: str) -> str:
        return self._actuator.repeat(fault, link)

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        return self._actuator.heal(fault, step_failed)

    def _goes_down(self, node: str) -> None:
        if node not in self.to_restart:
            self._admission.goes_down(node)
            self.to_restart[node] = None

    def _killed_by(
        self, node: str, incarnation: int, outcome: InjectionOutcome
    ) -> InjectionOutcome:
        """What has become of a node that a fault was to end: it is dead as well where another
        fault of the same moment has killed it."""
        self._admission.mark_dead(node, incarnation)
        if node in self._killed:
            return InjectionOutcome(True, f"{outcome.evidence}: killed at the same moment")
        if outcome.fired:
            self._killed.add(node)
        return outcome
