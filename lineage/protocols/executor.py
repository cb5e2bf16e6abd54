"""Round-based programs under test: play a schedule, compare with the clean run, say why."""

from __future__ import annotations

from functools import cached_property
from time import perf_counter

from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.graph import Lineage
from bettong.lineage.protocols.failure_spec import FailureSpec
from bettong.lineage.protocols.rounds import Judged, Message, Play, RoundProgram
from bettong.lineage.results import Anomaly, Outcome
from bettong.lineage.search.executor import Execution


def judge(baseline: Judged, found: Judged) -> tuple[Outcome, frozenset[str]]:
    """The outcome of a run, and the goals that it breaks.

    A goal is broken when the clean run reaches it, this run does not, and its precondition holds
    here. A run in which no goal's precondition holds is vacuous.
    """
    broken = (baseline.post - found.post) & found.pre
    if broken:
        return "violation", broken
    return ("good" if found.pre & baseline.post else "vacuous"), frozenset()


def unasked(baseline: Judged, found: Judged) -> frozenset[str]:
    """Goals whose precondition holds and whose postcondition does not, and of which nothing is
    asked all the same: the clean run does not reach them, so that no fault has taken them away."""
    return found.pre - found.post - baseline.post


class RoundExecutor:
    """Runs a round-based program under a failure specification."""

    def __init__(self, program: RoundProgram, spec: FailureSpec) -> None:
        self.program = program
        self.spec = spec
        self.seconds = 0.0

    @property
    def parallel(self) -> int:
        """One at a time: a run is shorter than what it takes to share it out."""
        return 1

    @cached_property
    def baseline(self) -> Judged:
        """What holds at the end of the clean run."""
        return self.judged(CLEAN)

    def judged(self, schedule: FaultSet) -> Judged:
        """What holds at the end of a run."""
        return self.program.play(self.spec, schedule, lineage=False).judged

    def outcome(self, schedule: FaultSet) -> Outcome:
        """Judge a schedule without asking why."""
        return judge(self.baseline, self.judged(schedule))[0]

    def judge(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run and judge without asking why."""
        outcome = self.outcome(schedule)
        return Execution(schedule, outcome)

    def run(self, schedule: FaultSet = CLEAN) -> Execution:
        """Run, judge, and build the lineage of every goal."""
        began = perf_counter()
        self.spec.check(schedule)
        goals = self.baseline.post
        play = self.program.play(self.spec, schedule, explain=goals)
        outcome, broken = judge(self.baseline, play.judged)
        lineage = play.lineage if play.lineage is not None else Lineage()
        for goal in sorted(goals):
            lineage.fact(f"goal({goal})", goal=True, given=f"pre({goal})")
            if goal in play.judged.post:
                lineage.firing(f"goal({goal})", [f"post({goal})"], "holds")
            if goal not in play.judged.pre:
                lineage.firing(f"goal({goal})", [f"!pre({goal})"], "vacuous")
        self.seconds += (seconds := perf_counter() - began)
        return Execution(
            schedule,
            outcome,
            lineage,
            anomalies=tuple(
                Anomaly(
                    "Violation",
                    key=goal,
                    expected=f"post({goal}), because pre({goal}) holds",
                    seen=f"post({goal}) does not hold",
                )
                for goal in sorted(broken)
            ),
            evidence={f: _evidence(self.spec, f, play.messages) for f in sorted(schedule)},
            seconds=seconds,
            note=_note(unasked(self.baseline, play.judged)),
            details=_details(play),
        )


def _note(open_goals: frozenset[str]) -> str:
    if not open_goals:
        return ""
    return f"the precondition holds for {min(open_goals)}, but the postcondition does not"


def _evidence(spec: FailureSpec, id: str, messages: tuple[Message, ...]) -> str:
    fault = spec.faults[id]
    if "->" not in fault.place:
        return f"{fault.place} crashed in round {fault.time}"
    sender, receiver = fault.place.split("->")
    sent = [m for m in messages if (m.sender, m.receiver, m.sent) == (sender, receiver, fault.time)]
    what = ", ".join(sorted({m.name for m in sent})) or "nothing was sent"
    return f"{fault.kind} {fault.place} in round {fault.time}: {what}"


def _details(play: Play) -> dict[str, object]:
    return {
        "messages": [
            {
                "name": m.name,
                "sender": m.sender,
                "receiver": m.receiver,
                "sent": m.sent,
                "arrives": m.arrives,
                "content": ",".join(str(c) for c in m.content),
            }
            for m in play.messages
        ],
        "facts": {n: dict(held) for n, held in play.facts.items()},
    }
