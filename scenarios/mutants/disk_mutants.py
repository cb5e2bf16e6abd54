"""Systems that mistreat their disk, with one honest mistake each, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.scenario import Scenario
from bettong.scenarios.corners import ROLLING, ROLLING_TWO
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.mutants.definition import mutant

MUTANTS: Sequence[Scenario] = (
    mutant(
        COUNTING,
        "gateway_acks_unsynced",
        "the gateway acknowledges what it has written and not synced",
        "gateway",
        "disks:AcksUnsynced",
        "Sync the journal before you acknowledge: written is in memory, synced is on the disk.",
    ),
    mutant(
        COUNTING,
        "gateway_swallows_failed_syncs",
        "the gateway goes on when its journal cannot be synced",
        "gateway",
        "disks:SwallowsFailedSyncs",
        "Fail the request when the sync fails: what was written may be gone after a power cut.",
    ),
    mutant(
        COUNTING,
        "gateway_syncs_again",
        "the gateway tries again when its journal cannot be synced, and believes the second answer",
        "gateway",
        "disks:SyncsAgain",
        "Write again what a failed sync was to make durable: the next sync has given it up.",
    ),
    mutant(
        COUNTING,
        "gateway_leaves_segment_unnamed",
        "the gateway renames a new segment into its place, and does not sync the folder",
        "gateway",
        "disks:LeavesSegmentUnnamed",
        "Sync the folder after a rename, or the name can be lost with all that is in the file.",
    ),
    mutant(
        COUNTING,
        "gateway_begins_in_place",
        "the gateway begins the journal of a new stream under its own name",
        "gateway",
        "disks:BeginsInPlace",
        "Write what a file begins with under another name, and rename it when that is durable.",
    ),
    mutant(
        COUNTING,
        "gateway_copies_when_started",
        "the gateway, when it starts, removes its journal before the copy of it has the name",
        "gateway",
        "disks:CopiesWhenStarted",
        "Let what a start does be cut off anywhere: rename the copy over the file, remove nothing.",
    ),
    mutant(
        COUNTING,
        "gateway_numbers_first",
        "the gateway counts messages before it has written them, and the write fails",
        "gateway",
        "disks:NumbersFirst",
        "Count what is durable, after the write; or count back when it fails.",
    ),
    mutant(
        COUNTING,
        "gateway_ends_first",
        "the gateway takes a stream for ended before that is written down, and the write fails",
        "gateway",
        "disks:EndsFirst",
        "Take a stream for ended when its end is durable, or a restart has it go on for ever.",
    ),
    mutant(
        COUNTING,
        "gateway_leaves_torn_records",
        "the gateway writes on behind a record that a full disk has taken in part",
        "gateway",
        "disks:LeavesTornRecords",
        "Cut the file back to its last whole record when a write fails, and only then go on.",
    ),
    mutant(
        COUNTING,
        "gateway_forgets_rests",
        "the gateway writes on behind a record that it could not cut off on a disk that failed",
        "gateway",
        "disks:ForgetsRests",
        "Remember that the rest of a failed write is there, and cut it off before the next one.",
    ),
    mutant(
        ROLLING_TWO,
        "gateway_drops_newest_first",
        "the gateway removes old segments from the newest one on, and the disk fails amid that",
        "gateway",
        "disks:DropsNewestFirst",
        "Remove the oldest first: what is left when that fails has no gap then.",
    ),
    mutant(
        ROLLING_TWO,
        "gateway_removes_once",
        "the gateway fails for good when a segment is gone whose removal is said to have failed",
        "gateway",
        "disks:RemovesOnce",
        "Take what is gone for removed: a call that has failed may have done its work.",
    ),
    mutant(
        COUNTING,
        "gateway_appends_again",
        "the gateway writes a record again when the disk has failed, and the disk has it already",
        "gateway",
        "disks:AppendsAgain",
        "Cut the file back to its last whole record before you write again, whatever has failed.",
    ),
    mutant(
        ROLLING,
        "sink_keeps_half_begun_segment",
        "the sink goes on in its log although a new segment, not begun, has its name already",
        "receiver",
        "disks:KeepsHalfBegun",
        "Take back what a failed call may have done all the same, before you go on without it.",
    ),
    mutant(
        COUNTING,
        "sink_commits_first",
        "the sink takes a batch for committed before that is written down, and the write fails",
        "receiver",
        "disks:CommitsFirst",
        "Change what you remember after the record is durable, never before.",
    ),
    mutant(
        COUNTING,
        "sink_trusts_what_is_there",
        "after a restart the sink takes for durable what was written and not synced",
        "receiver",
        "disks:TrustsWhatIsThere",
        "Sync the log that you have read before you act on it: it may be in memory only.",
    ),
    mutant(
        COUNTING,
        "state_unreadable_is_new",
        "keys begin anew when the disk fails while the file of their entities is read",
        "protocol",
        "disks:TakesUnreadableForNew",
        "Tell what was never written from what cannot be read, and end where it cannot.",
    ),
    mutant(
        COUNTING,
        "state_files_unsynced",
        "a manifest names state files that are not durable yet",
        "protocol",
        "disks:LeavesStateUnsynced",
        "Sync each state file and its folder before the manifest that names it is published.",
    ),
)
