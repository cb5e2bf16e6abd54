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
        to_restart: nodes that are to come back.
    """

    def __init__(
        self, actuator: Actuator, admission: StepAdmission, step: TraceEvent | None = None
    ) -> None:
        self.to_restart: list[str] = []
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
            self._admission.goes_down(node)
            self.to_restart.append(node)
        incarnation, outcome = self._actuator.crash(node)
        self._admission.mark_dead(node, incarnation)
        return outcome

    def cut_power(self, node: str, keep: Keep) -> InjectionOutcome:
        self._admission.goes_down(node)
        self.to_restart.append(node)
        incarnation, outcome = self._actuator.cut_power(node, keep)
        self._admission.mark_dead(node, incarnation)
        return outcome

    def pause(self, node: str, replace: bool) -> InjectionOutcome:
        outcome = self._actuator.pause(node)
        if replace and outcome.fired:
            self._admission.exempt(node, self._step)
            self.to_restart.append(node)
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
