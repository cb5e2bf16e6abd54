"""Which faults are tried first on a mistake: those that hit what runs it.

What the right engine has run says where: a recovery that only some faults lead to, or the steps of
a node within or after which the statement is run. Only the order depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.turns import Sort, in_turn, sort_of
from bettong.lineage.faults import FaultSet
from bettong.scenarios.benchmarks.mutants.executed import Executed, Moment


@dataclass(frozen=True, slots=True)
class Trail:
    """Where a scenario runs a statement of the right engine.

    Attributes:
        known: the single faults that the search puts up there, by id; none that are not of them
            come of the mistake itself.
        led_to: those without which the mistake is not run.
        sorts: of faults that have led to it in any scenario.
        moments: at which it is run without faults.
        shown: fault sets that have shown other mistakes, the best first.
    """

    known: frozenset[str] = frozenset()
    led_to: frozenset[str] = frozenset()
    sorts: frozenset[Sort] = frozenset()
    moments: frozenset[Moment] = frozenset()
    shown: Sequence[FaultSet] = ()

    def first(self, faults: Sequence[Fault]) -> list[FaultSet]:
        """The fault sets to be put up first: of these single faults each, and behind them what has
        shown other mistakes with several.

        Before all else come faults that the right engine does not have: what it makes durable
        cannot be lost by them. Then those that lead to the mistake, their like, those of their kind
        at such a step, those at a step that runs it, those that start a node again that runs it
        when it is started, those at another step of the same shape, of a node that runs it, and the
        rest; of these, those first that have shown another mistake, and then all kinds in turn.
        """
        groups: dict[tuple[bool, int, int], list[Fault]] = {}
        shown = {ids: place for place, ids in enumerate(self.shown)}
        earlier = _steps_before(faults)
        for fault in faults:
            place = shown.get(frozenset({fault.id}), len(shown))
            apart = self._apart(fault, earlier)
            group = (bool(self.known) and fault.id in self.known, apart, place)
            groups.setdefault(group, []).append(fault)
        ranked = [id for group in sorted(groups) for id in in_turn(groups[group])]
        several = [ids for ids in self.shown if len(ids) > 1]
        return [*(frozenset({id}) for id in ranked), *several]

    def _apart(self, fault: Fault, earlier: Mapping[Moment, str]) -> int:
        """How far a fault is from what runs the statement; 0 is nearest. Right before a node's next
        step is as near as at the step itself: by then the statement has done its work."""
        start = fault.points[0]
        step = start.step
        steps = {step for _, step in self.moments if step}
        nodes = {node for node, _ in self.moments}
        started = {node for node, step in self.moments if not step}
        hit = {*fault.nodes, *(end for link in fault.links for end in link.split("->"))}
        near = (
            fault.id in self.led_to,
            sort_of(fault) in self.sorts,
            (fault.kind, StepId.parse(step).shape) in {(kind, at) for kind, _, at in self.sorts},
            (step in steps and (not hit or bool(hit & nodes)))
            or (
                start.phase == "before"
                and any((n, earlier.get((n, step))) in self.moments for n in hit)
            ),
            bool(fault.kills) and bool(hit & started),
            StepId.parse(step).shape in {StepId.parse(s).shape for s in steps},
            bool(hit & nodes),
            True,
        )
        return near.index(True)


def _steps_before(faults: Sequence[Fault]) -> dict[Moment, str]:
    """The step before each step of a node, as far as faults at both tell."""
    last: dict[str, str] = {}
    found: dict[Moment, str] = {}
    for fault in faults:
        step = fault.points[0].step
        for node in fault.nodes:
            if last.get(node, step) != step:
                found.setdefault((node, step), last[node])
            last[node] = step
    return found


def trails(
    recorded: Mapping[str, Executed],
    path: str,
    line: int,
    difference: int,
    shown: Mapping[str, Sequence[FaultSet]],
) -> dict[str, Trail]:
    """The trail of a mistake in each scenario.

    Args:
        recorded: what each scenario runs.
        path, line: of the statement that it is in.
        difference: the line whose run makes the mistake felt: the same, or its failure.
        shown: fault sets that have shown other mistakes, by scenario.
    """
    led = {name: executed.led_to(path, difference) for name, executed in recorded.items()}
    sorts = frozenset(sort for found in led.values() for sort in found.values())
    return {
        name: Trail(
            executed.faults,
            frozenset(led[name]),
            sorts,
            executed.clean.get(path, {}).get(line, frozenset()),
            shown.get(name, ()),
        )
        for name, executed in recorded.items()
    }
