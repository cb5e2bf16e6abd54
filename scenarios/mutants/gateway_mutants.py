"""Gateways with one honest mistake each, and the fault that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.scenario import Scenario
from bettong.scenarios.corners import ROLLING
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.market_spread import MARKET_SPREAD
from bettong.scenarios.mutants.definition import mutant
from bettong.scenarios.word_count import WORD_COUNT

MUTANTS: Sequence[Scenario] = (
    mutant(
        WORD_COUNT,
        "gateway_acks_early",
        "the gateway acknowledges before a message is durable",
        "gateway",
        "gateways:AcksEarly",
        "Write and sync the journal first, acknowledge after that.",
    ),
    mutant(
        WORD_COUNT,
        "gateway_releases_when_read",
        "the gateway lets go of messages when they are read, not when they are committed",
        "gateway",
        "gateways:ReleasesWhenRead",
        "Release messages when the source commits past them, after the sink has committed.",
    ),
    mutant(
        COUNTING,
        "gateway_acks_end_early",
        "the gateway acknowledges the end of a stream before it is durable",
        "gateway",
        "gateways:AcksEndEarly",
        "Write and sync the end of the stream as its messages, and acknowledge it after that.",
    ),
    mutant(
        COUNTING,
        "gateway_knows_by_content",
        "the gateway knows a frame that is sent again by its content, not by its number",
        "gateway",
        "gateways:KnowsByContent",
        "Number messages at the sender, and take what follows on the last number.",
    ),
    mutant(
        WORD_COUNT,
        "gateway_takes_stale_frames",
        "the gateway takes a frame that arrives once more after its connection was replaced",
        "gateway",
        "gateways:TakesStaleFrames",
        "Take from a stream's newest connection alone, and only what follows on the last number.",
    ),
    mutant(
        COUNTING,
        "gateway_takes_from_old_connections",
        "the gateway takes what it has read from a connection that a newer one has replaced",
        "gateway",
        "gateways:TakesFromOldConnections",
        "Look, within the lock of the stream, whether a frame comes from its newest connection.",
    ),
    mutant(
        COUNTING,
        "gateway_looks_before_taking_over",
        "the gateway looks how far a stream is before it takes it from its sender's old connection",
        "gateway",
        "gateways:LooksBeforeTakingOver",
        "Take the stream over first: what the old connection has under way is done by then.",
    ),
    mutant(
        WORD_COUNT,
        "gateway_forgets_credit",
        "the gateway counts credit from its start: after a restart it is never enough",
        "gateway",
        "gateways:CountsCreditFromItsStart",
        "Derive the credit from what is durable: released messages and how many may wait.",
    ),
    mutant(
        COUNTING,
        "gateway_notes_releases_twice",
        "the gateway notes a repeated release twice, and does not start from two equal notes",
        "gateway",
        "gateways:NotesReleasesTwice",
        "Write nothing for what is known already, and read back whatever was ever written.",
    ),
    mutant(
        COUNTING,
        "gateway_releases_backwards",
        "the gateway takes a release that comes late for the one that counts",
        "gateway",
        "gateways:ReleasesBackwards",
        "Let the highest release count: what was released once nobody wants again.",
    ),
    mutant(
        COUNTING,
        "gateway_answers_failed_releases",
        "the gateway says that messages are released although its disk has not noted it",
        "gateway",
        "gateways:AnswersFailedReleases",
        "Answer a release once its note is durable; answer with the error where it cannot be made.",
    ),
    mutant(
        COUNTING,
        "gateway_ends_on_repeated_release",
        "the gateway ends when it is asked again for a release that it has made",
        "gateway",
        "gateways:EndsOnRepeatedRelease",
        "Answer what is asked again as before: a client cannot know whether its request arrived.",
    ),
    mutant(
        COUNTING,
        "gateway_goes_by_old_notes",
        "the gateway notes as it is stopped how far a stream is, and goes by that at every start",
        "gateway",
        "gateways:GoesByItsNote",
        "Remove what a stop has noted before anything is added to what it tells of.",
    ),
    mutant(
        ROLLING,
        "gateway_indexes_the_first",
        "after a restart the gateway finds messages from the first record on, and removes none",
        "gateway",
        "gateways:IndexesTheFirst",
        "Index what is read back as what is appended: what is removed goes by the index.",
    ),
    mutant(
        MARKET_SPREAD,
        "gateway_takes_silence_for_the_end",
        "the gateway takes a stream for ended that has been silent for a while",
        "gateway",
        "gateways:TakesSilenceForTheEnd",
        "Cut batches by number, so that what is in them does not depend on who was ahead.",
    ),
)
