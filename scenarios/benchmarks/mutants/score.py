"""What became of the mutants of each module, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from bettong.scenarios.benchmarks.mutants.operators import Mutant
from bettong.scenarios.benchmarks.mutants.searching import Judged


@dataclass(slots=True)
class Score:
    """Of one module, or of all.

    Attributes:
        mutants: how many there are, the equivalent ones left out.
        never_run: those of them that no scenario and no sink runs.
        judged: those that were drawn.
    """

    module: str
    mutants: int = 0
    never_run: int = 0
    judged: list[Judged] = field(default_factory=list)

    def of(self, status: str) -> list[Judged]:
        """The drawn ones with this end."""
        return [one for one in self.judged if one.finding.status == status]

    @property
    def counted(self) -> int:
        """The drawn ones that a search could find: those that fail without a fault are not."""
        return len(self.judged) - len(self.of("fails without a fault"))

    @property
    def killed(self) -> int:
        """How many a search has found."""
        return len(self.of("killed"))

    @property
    def ratio(self) -> float | None:
        """Killed of those that count."""
        return round(self.killed / self.counted, 3) if self.counted else None

    @property
    def runs_to_kill(self) -> float | None:
        """On average."""
        return _mean([float(one.finding.runs) for one in self.of("killed")])

    @property
    def seconds_to_kill(self) -> float | None:
        """On average, of wall time, the start of the processes included."""
        return _mean([one.finding.seconds for one in self.of("killed")])


def _mean(values: Sequence[float]) -> float | None:
    return round(mean(values), 1) if values else None


def scores(
    mutants: Sequence[Mutant], run: Sequence[Mutant], judged: Sequence[Judged]
) -> tuple[list[Score], Score]:
    """The score of each module, and of all together.

    Args:
        mutants: all, without the equivalent ones.
        run: those that some scenario or sink runs.
        judged: those that were drawn and searched.
    """
    found: dict[str, Score] = {}
    whole = Score("all")
    for mutant in mutants:
        for score in (found.setdefault(mutant.module, Score(mutant.module)), whole):
            score.mutants += 1
            score.never_run += 1
    for mutant in run:
        found[mutant.module].never_run -= 1
        whole.never_run -= 1
    for one in judged:
        found[one.mutant.module].judged.append(one)
        whole.judged.append(one)
    return sorted(found.values(), key=lambda score: score.module), whole
