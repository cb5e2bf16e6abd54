"""Batches with one honest mistake each in the driver or its tasks, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.scenario import Scenario
from bettong.scenarios.corners import ROLLING, VISITS
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.merging import FORGETTING_APART, MERGING
from bettong.scenarios.mutants.definition import mutant
from bettong.scenarios.showcase import ALERTS
from bettong.scenarios.word_count import WORD_COUNT

MUTANTS: Sequence[Scenario] = (
    mutant(
        WORD_COUNT,
        "replay_reads_on",
        "a batch that is done again takes all that has come since",
        "protocol",
        "protocols:ReplayReadsOn",
        "Pin the range of a batch in the log of offsets, and read exactly that again.",
    ),
    mutant(
        WORD_COUNT,
        "state_applied_twice",
        "a batch that is done again is applied to the state that has it already",
        "protocol",
        "protocols:AppliesTwice",
        "Compute batch N from the state after batch N-1, by version, never from the newest.",
    ),
    mutant(
        replace(WORD_COUNT, judges_state=False),  # which lacks the last batch without any fault
        "state_published_late",
        "the state of a batch is published after the batch counts as done",
        "protocol",
        "protocols:PublishesLate",
        "Publish state N before the sink commits batch N and before its offsets count as done.",
    ),
    mutant(
        ROLLING,
        "fenced_commit_passed_over",
        "a driver whose commit is refused goes on as if its successor had made it",
        "protocol",
        "protocols:PassesOverFence",
        "End when a sink refuses the epoch: release nothing that was not committed.",
    ),
    mutant(
        WORD_COUNT,
        "reader_resumes_late",
        "after a restart the reader resumes one message too far",
        "protocol",
        "protocols:ResumesLate",
        "Store the number of the next message, and check that each range follows the last one.",
    ),
    mutant(
        WORD_COUNT,
        "state_dropped_early",
        "the state before a batch is dropped while the batch may have to be done again",
        "protocol",
        "protocols:DropsBase",
        "Keep version N-1 of the state until batch N counts as done.",
    ),
    mutant(
        WORD_COUNT,
        "state_read_by_name",
        "tasks begin from the newest state file of their partition, published or not",
        "protocol",
        "protocols:TakesNewest",
        "Read the files that the manifest of the batch before names, and no others.",
    ),
    mutant(
        COUNTING,
        "state_hashed_by_python",
        "entities are found by Python's hash of their keys, which is another one in each process",
        "protocol",
        "protocols:HashesAsPython",
        "Hash what outlives a process by a function that is the same everywhere, such as BLAKE2b.",
    ),
    mutant(
        WORD_COUNT,
        "replay_noted_early",
        "a replayed batch is noted as done before it is: a second crash loses it",
        "protocol",
        "protocols:NotesReplaysEarly",
        "Note what is done after it is done; a replay may be cut short too.",
    ),
    mutant(
        WORD_COUNT,
        "commit_given_up",
        "a commit that was asked for twice is taken for done, answered or not",
        "protocol",
        "protocols:GivesUpCommits",
        "Ask until the sink answers, or stop the query; never go on without the answer.",
    ),
    mutant(
        WORD_COUNT,
        "commit_passed_over",
        "a commit that nobody has answered is passed over when patience ends",
        "protocol",
        "protocols:PassesUnansweredCommits",
        "Stop the query when patience ends, and ask again when it is started again.",
    ),
    mutant(
        WORD_COUNT,
        "commit_awaited_for_good",
        "the answer to a commit is awaited without limit, also when its connection says nothing",
        "protocol",
        "protocols:WaitsForGood",
        "Give up an answer after some seconds, and ask again on a connection of its own.",
    ),
    mutant(
        WORD_COUNT,
        "retries_left_out",
        "what a task's second attempt did is left out of the batch",
        "protocol",
        "protocols:LeavesOutRetries",
        "Take the one report of each partition, whichever attempt it is of.",
    ),
    mutant(
        WORD_COUNT,
        "partition_handed_over_twice",
        "after a restart two tasks take what belongs to a state partition: its old and new owner",
        "protocol",
        "protocols:MovesTwice",
        "Let the partition's number alone tell whose a message is, and nobody remember owners.",
    ),
    mutant(
        WORD_COUNT,
        "partition_not_handed_over",
        "after a restart there is one state partition fewer, and nobody has its keys",
        "protocol",
        "protocols:ShrinksAlone",
        "Find a key's partition by today's number of partitions, and its state by its hash.",
    ),
    mutant(
        ALERTS,
        "late_values_dropped",
        "the clock of windows is not replayed with the state: values are late, and dropped",
        "protocol",
        "protocols:ClockRunsAhead",
        "Keep the clock in the state entity, so that it goes back with it.",
    ),
    mutant(
        COUNTING,
        "epoch_taken_blindly",
        "a driver takes its epoch without looking whether another one has it",
        "protocol",
        "protocols:TakesEpochBlindly",
        "Take an epoch by a create that fails when it is there, and take the next one then.",
    ),
    mutant(
        COUNTING,
        "epoch_taken_by_rename",
        "a driver looks whether its epoch is taken, and then renames a file to it",
        "protocol",
        "disks:TakesEpochByRename",
        "Give the epoch's file its name by what fails when it is there, such as a link.",
    ),
    mutant(
        COUNTING,
        "last_state_left_out",
        "a batch that is done again has its outputs, and leaves the state as it was before it",
        "protocol",
        "protocols:LeavesLastStateOut",
        "Publish the state of a batch each time that it is done, whatever stands there already.",
    ),
    mutant(
        VISITS,
        "failures_counted_twice",
        "failures of a batch that is done again are added to a count that has them already",
        "protocol",
        "protocols:CountsFailuresTwice",
        "Count from the state after the batch before, by version, never from the newest.",
    ),
    mutant(
        MERGING,
        "merged_files_dropped_early",
        "state files that were merged are removed while the batch after may have to be done again",
        "protocol",
        "protocols:DropsMergedFiles",
        "Remove a state file when no version of the state that may be read again names it.",
    ),
    mutant(
        FORGETTING_APART,
        "forgotten_come_back",
        "what says that an entity is forgotten is dropped while an older file has it",
        "protocol",
        "protocols:ForgetsTombstones",
        "Keep what says that an entity is gone until all files that may hold it are merged.",
    ),
)
