"""Receivers and file sinks with one honest mistake each, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.scenario import Scenario
from bettong.scenarios.counting import COUNTING, COUNTING_TWO
from bettong.scenarios.mutants.definition import mutant
from bettong.scenarios.showcase import DOUBLING
from bettong.scenarios.word_count import WORD_COUNT, WORD_COUNT_TO_FILES

MUTANTS: Sequence[Scenario] = (
    mutant(
        WORD_COUNT,
        "sink_commits_again",
        "the sink commits a batch again when it is replayed",
        "receiver",
        "receivers:CommitsAgain",
        "Record (application, batch) with the commit, and do nothing for a batch that is recorded.",
    ),
    mutant(
        WORD_COUNT,
        "sink_commits_losers",
        "the sink commits what a losing attempt has staged",
        "receiver",
        "receivers:CommitsLosers",
        "Let the driver name the winning attempts, and drop what the others have staged.",
    ),
    mutant(
        WORD_COUNT,
        "outputs_numbered_by_arrival",
        "outputs are numbered when they arrive, not by their input",
        "receiver",
        "receivers:NumbersByArrival",
        "Derive an output's id from its input's id, so that a replay gives the same one.",
    ),
    mutant(
        WORD_COUNT,
        "sink_forgets_on_restart",
        "the sink keeps in memory which batches it has committed",
        "receiver",
        "receivers:ForgetsOnRestart",
        "Write the record of a committed batch with its rows, and read it when starting.",
    ),
    mutant(
        WORD_COUNT,
        "sink_stages_in_memory",
        "the sink says prepared, but keeps what is staged in memory only",
        "receiver",
        "receivers:StagesInMemory",
        "Sync staged rows before answering, and refuse a commit whose winners are not there.",
    ),
    mutant(
        WORD_COUNT,
        "sink_commits_late",
        "the sink answers that a batch is committed before it is",
        "receiver",
        "receivers:CommitsLate",
        "Write and sync the commit first, answer after that.",
    ),
    mutant(
        WORD_COUNT,
        "sink_writes_log_again",
        "after a restart the sink writes out its log from the beginning",
        "receiver",
        "receivers:WritesLogAgain",
        "Keep with the output how much of the log is in it, and go on from there.",
    ),
    mutant(
        WORD_COUNT,
        "sink_drops_torn_row",
        "after a power cut the sink drops the torn row, and takes the rest for the whole batch",
        "receiver",
        "receivers:DropsTornRow",
        "Compare what is there with what was committed, and write all of it again if it differs.",
    ),
    mutant(
        WORD_COUNT,
        "sink_stages_again",
        "what is prepared again is staged beside what was there",
        "receiver",
        "receivers:StagesAgain",
        "Let an attempt's rows replace those that it has staged, and drop those of older epochs.",
    ),
    mutant(
        COUNTING,
        "sink_stages_for_nobody",
        "the sink stages rows of a batch that it has committed, and keeps them for good",
        "receiver",
        "receivers:StagesForNobody",
        "Look whether the batch is committed before anything of it is staged.",
    ),
    mutant(
        COUNTING_TWO,
        "sink_remembers_staged",
        "the sink remembers that rows were sent twice, and has dropped them when an epoch ended",
        "receiver",
        "receivers:RemembersStaged",
        "Forget with an epoch all that was learnt of its attempts.",
    ),
    mutant(
        DOUBLING,
        "sink_knows_batches_by_number",
        "which batches are committed is remembered by their number, for all sinks together",
        "receiver",
        "receivers:KnowsBatchesByNumber",
        "Record (application, sink, batch): each sink commits the batch for itself.",
    ),
    mutant(
        WORD_COUNT,
        "sink_fences_nobody",
        "the sink knows batches by their epoch, but takes commits of an epoch that is over",
        "receiver",
        "receivers:TrustsEpochs",
        "Refuse every request of an epoch that is older than the newest one opened.",
    ),
    mutant(
        WORD_COUNT_TO_FILES,
        "sink_commits_by_partition",
        "the sink commits partition after partition, and the first one counts for all",
        "sink",
        "files:CommitsByPartition",
        "Make all partitions of a batch visible at once, after all of them are prepared.",
    ),
    mutant(
        WORD_COUNT,
        "sink_locks_nothing",
        "the sink commits a batch when it is asked again, while it still commits it",
        "receiver",
        "receivers:LocksNothing",
        "Have requests about a batch wait for each other, and look then whether it is done.",
    ),
    mutant(
        COUNTING,
        "sink_knows_the_last_batch",
        "the sink compares a commit with the last one alone, and takes an older one for new",
        "receiver",
        "receivers:KnowsTheLastBatch",
        "Pass over whatever is not after the last batch: a request may come later than others.",
    ),
    mutant(
        COUNTING,
        "sink_locks_its_log_alone",
        "the sink adds a batch to its output without the lock under which it notes the commit",
        "receiver",
        "receivers:LocksItsLogAlone",
        "Hold the lock until the rows are in the output and nobody has to add them any more.",
    ),
    mutant(
        WORD_COUNT_TO_FILES,
        "sink_records_late",
        "the sink makes rows visible, and records after that that the batch is committed",
        "sink",
        "files:RecordsLate",
        "Make the rows visible by the same atomic step that records them.",
    ),
    mutant(
        WORD_COUNT_TO_FILES,
        "sink_records_early",
        "the sink records that a batch is committed before its rows are visible",
        "sink",
        "files:RecordsEarly",
        "Make the rows visible by the same atomic step that records them.",
    ),
)
