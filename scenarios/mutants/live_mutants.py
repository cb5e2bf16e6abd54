"""Live batches with one honest mistake each in how they are planned, and what shows it."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.scenario import Scenario
from bettong.scenarios.live import BURST, SILENT, STALL, TRICKLE
from bettong.scenarios.mutants.definition import mutant

MUTANTS: Sequence[Scenario] = (
    mutant(
        TRICKLE,
        "wait_plans_again",
        "a batch that is done again takes what has come when its wait ends once more",
        "protocol",
        "planners:PlansAgain",
        "Take what was noted of a batch; ask when the wait ends only where there is no note.",
    ),
    mutant(
        TRICKLE,
        "batch_planned_twice",
        "a driver that was taken for dead notes a batch over its successor's note",
        "protocol",
        "planners:PlansTwice",
        "Make the note only where there is none, in one step, and go by the one that is there.",
    ),
    mutant(
        STALL,
        "batch_goes_by_no_note",
        "a driver that finds a batch noted by another one takes what it has planned itself",
        "protocol",
        "planners:KeepsItsOwnEnds",
        "Take what the note says, whoever has made it.",
    ),
    mutant(
        BURST,
        "full_batch_not_noted",
        "a full batch is not noted, and a driver that was taken for dead notes that it has less",
        "protocol",
        "planners:NotesShortBatches",
        "Note every batch that others may find shorter or longer, before any of it is read.",
    ),
    mutant(
        SILENT,
        "silent_end_forgotten",
        "after a restart nobody hears that a stream without messages has ended",
        "protocol",
        "planners:ForgetsSilentEnds",
        "Ask every stream whether it has ended, also those of which no message ever came.",
    ),
)
