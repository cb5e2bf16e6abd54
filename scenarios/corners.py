"""Small scenarios of what otherwise only long runs, large messages or rare events come to: so that
the search fires there too."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from bettong.engine import Application
from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Settings
from bettong.engine.endpoints import TcpSink
from bettong.engine.ingest.frames import Batch, Read
from bettong.engine.ingest.gateway import Gateway
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.errors import FrameError
from bettong.engine.state.manifest import Manifest, current_epoch
from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.applications import (
    changing_sum,
    renamed_sum,
    rescaled_sum,
    rescaled_totals,
)
from bettong.scenarios.counting import COUNTING
from bettong.scenarios.live import merged

_LARGE = 4_300_000  # more than one answer of the gateway and one part of a prepare hold


def amounts() -> bytes:
    """Six numbers of three keys, no two of them the same: one that is taken for another shows."""
    return b"one,5\ntwo,10\nthree,15\none,20\ntwo,25\nthree,30"


def _numbers(*values: int) -> str | dict[str, str]:
    """Numbers in bytes, as a row holds them: those that are no text in base64."""
    data = struct.pack(f">{len(values)}q", *values)
    return data.decode() if data.isascii() else {"base64": base64.b64encode(data).decode()}


def visits() -> bytes:
    """Two users with a silence between, and a line that is none. One silence is just not too long
    for what is remembered, another one is just too long for a session. One visit is just too late,
    by all that a session takes up; and a third user's visit tells the time to all. The last one is
    too late after the visit that came before it, and in time after the latest one."""
    return (
        b"1,ann\n3,bob\n5,ann\nnot a visit\n28,bob\n42,ann\n38,bob\n90,ann\n80,ann\n71,eve\n110,ann"
    )


def readings() -> bytes:
    """Readings of two sensors, of which one joins two runs and one comes late; a minute ends with
    a reading, and a run does."""
    return b"7,10,1\n7,45,2\n7,28,4\n8,5,8\n7,60,16\n7,20,32\n8,55,64\n7,130,200"


VISITS_BY_HAND = {
    "visits/0.0.0@counts": "ann was here 1 times",
    "visits/1.0.0@counts": "bob was here 1 times",
    "visits/2.0.0@counts": "ann was here 2 times",
    "visits/3.1@unreadable": "read cannot read not a visit",
    "visits/4.0.0@ended": "1 pages from 3 to 13",
    "visits/4.0.0@counts": "bob was here 2 times",
    "visits/5.0.0@ended": "2 pages from 1 to 15",
    "visits/5.0.0@counts": "2 are forgotten",
    "visits/5.0.1@counts": "ann was here 1 times",
    "visits/6.0.0@ended": "1 pages from 28 to 38",
    "visits/6.0.0@counts": "bob was here 3 times",
    "visits/7.0.0@ended": "1 pages from 42 to 52",
    "visits/7.0.0@counts": "1 are forgotten",
    "visits/7.0.1@counts": "ann was here 1 times",
    "visits/8.0.0@counts": "ann was here 2 times",
    "visits/9.0.0@counts": "eve was here 1 times",
    "visits/9.1.368341355.1757475340.1610612736.0@ended": "1 pages from 38 to 48",
    "visits/9.1.556715632.966238044.1073741824.0@ended": "1 pages from 71 to 81",
    "visits/9.1.368341355.1757475340.1610612736.0@counts": "3 are forgotten",
    "visits/10.0.0@ended": "1 pages from 90 to 100",
    "visits/10.0.0@counts": "ann was here 3 times",
}
"""What the visits lead to, worked out with pencil and paper; three by a tick, for bob and for eve.
Of the one that is late no session knows."""

READINGS_BY_HAND = {
    "readings/0@latest": _numbers(1),
    "readings/1@latest": _numbers(1, 2),
    "readings/1.0.0@windows": "from 0 to 2: 3",
    "readings/2@latest": _numbers(1, 2, 4),
    "readings/3@latest": _numbers(8),
    "readings/4@latest": _numbers(2, 4, 16),
    "readings/4.0.0@windows": "from 2 to 4: 20",
    "readings/4.0.0.1@windows": "from 0 to 60: 7",
    "readings/4.0.2@windows": "from 0 to 60: 7",
    "readings/5@latest": _numbers(4, 16, 32),
    "readings/5.0.2@windows": "from 0 to 60: 39",
    "readings/6@latest": _numbers(8, 64),
    "readings/6.0.0@windows": "from 0 to 2: 72",
    "readings/6.0.3@windows": "from 5 to 25: 8",
    "readings/7@latest": _numbers(16, 32, 200),
    "readings/7.0.0@windows": "from 4 to 6: 232",
    "readings/7.0.0.1@windows": "from 60 to 120: 48",
    "readings/7.0.2@windows": "from 60 to 120: 16",
    "readings/7.0.3@windows": "from 10 to 80: 55",
    "readings/7.1.1976182093.372762906.1073741824.0.1@windows": "from 0 to 60: 72",
}
"""What the readings lead to: the pairs, the minutes and the runs of each sensor, the minutes with
what came late; the last one by a tick. ``latest`` are the last three."""


def bookings() -> bytes:
    """What goes into two accounts and out of them, more than there is once of each."""
    return b"one,5\ntwo,10\none,-20\none,-5\ntwo,-15\ntwo,-10"


BOOKINGS_BY_HAND = {
    "amounts/0@booked": "one has 5 after 1",
    "amounts/1@booked": "two has 10 after 1",
    "amounts/2.2@refused": "one: ValueError: one would have -15",
    "amounts/3@booked": "one has 0 after 2",
    "amounts/4.2@refused": "two: ValueError: two would have -5",
    "amounts/5@booked": "two has 0 after 2",
}
"""What becomes of the accounts; what is refused has changed nothing."""

STATEMENTS_BY_HAND = {
    "amounts/2.0.6@refused": "one: ValueError: one would have -15",
    "amounts/2.1.1221701134.2109318424.1073741824@statements": "5 after 1",
    "amounts/2.1.1960057050.252731888.0@statements": "10 after 1",
    "amounts/4.0.6@refused": "two: ValueError: two would have -5",
    "amounts/5.1.1221701134.2109318424.1073741824@statements": "0 after 2",
    "amounts/5.1.1960057050.252731888.0@statements": "0 after 2",
}
"""The same, as told to both by a tick with each third booking."""


def large() -> bytes:
    """Four messages of some millions of bytes."""
    return b"\n".join(letter * _LARGE for letter in (b"a", b"b", b"c", b"d"))


class OtherPartitions(BatchProtocol):
    """Takes up its work after each restart with one state partition more."""

    def job(self, batch: int, base: Manifest) -> Job:
        """What a batch has to do."""
        job = super().job(batch, base)
        return replace(job, partitions=job.partitions + self.epoch - 1)


class SmallReplies(Gateway):
    """Answers readers with one record of the journal at a time, as one frame holds no more."""

    reply_bytes: ClassVar[int] = 1

    def read(self, stream: Stream, request: Read) -> Batch:
        """Messages from the start of the wanted range: of this scenario one is a record."""
        batch = super().read(stream, request)
        if len(batch.messages) > 1:
            raise FrameError(f"a frame does not hold {len(batch.messages)} messages")
        return batch


class SmallParts(TcpSink):
    """Hands over one row at a time."""

    part_bytes: ClassVar[int] = 1


class OtherCode(BatchProtocol):
    """Takes up its work after each restart with the next version of the application's code, and
    with one state partition more.

    Attributes:
        versions: of the code, the first one first; the last one stays.
    """

    versions: ClassVar[Sequence[Application]] = changing_sum.versions

    def __init__(self, settings: Settings) -> None:
        start = current_epoch(settings.store)
        app = self.versions[min(start, len(self.versions) - 1)]
        super().__init__(replace(settings, app=app, partitions=settings.partitions + start))


class OtherNames(OtherCode):
    """Takes up its work after the first restart with code whose steps and fields are renamed."""

    versions = renamed_sum.versions


class OtherScale(OtherCode):
    """Takes up its work after the first restart with code to which the fields of state mean
    something else."""

    versions = rescaled_sum.versions


class OtherScaleOfAll(OtherCode):
    """The same, where a tick meets the state of all keys at once."""

    versions = rescaled_totals.versions


ROLLING = replace(
    COUNTING,
    name="counting_rolling",
    title="sums in 3 batches, with journals that begin a new segment after each record",
    input=amounts,
    batch=2,
    frame=1,
    options={"gateway": ("--segment-bytes", "1"), "receiver": ("--segment-bytes", "1")},
)

ROLLING_TWO = Scenario(
    "merged_rolling",
    "two streams in 2 batches, with a gateway whose journals begin a segment after each record",
    "bettong.scenarios.applications.running_sum_merged:app",
    lambda: merged(6, 6),
    batch=3,
    frame=1,
    options={"gateway": ("--segment-bytes", "1")},
)

ON_CREDIT = replace(
    COUNTING,
    name="counting_on_credit",
    title="sums in 3 batches, with a gateway that takes two messages ahead and no more, and "
    "welcomes a sender that comes again when it has room for more",
    input=amounts,
    batch=2,
    frame=1,
    classes={"gateway": "bettong.scenarios.beside:WelcomesLate"},
    options={"gateway": ("--max-unreleased", "2")},
)

REPARTITIONED = replace(
    COUNTING,
    name="counting_repartitioned",
    title="sums in 2 batches, with one state partition more after each restart",
    input=amounts,
    classes={"protocol": "bettong.scenarios.corners:OtherPartitions"},
)

REPARTITIONED_TO_FILES = replace(
    REPARTITIONED,
    name="counting_repartitioned_to_files",
    title="sums in 2 batches, each of which becomes a file, with one state partition more after "
    "each restart",
    outputs="files",
)

AHEAD = replace(
    COUNTING,
    name="counting_ahead",
    title="sums in 2 batches, of a sender three frames ahead, which are made durable together",
    input=amounts,
    frame=1,
    window=3,
    classes={"gateway": "bettong.scenarios.beside:GathersThree"},
)

ON_ARRAYS = replace(
    COUNTING,
    name="counting_on_arrays",
    title="sums in 2 batches, over whole arrays at a time",
    application="bettong.scenarios.applications.running_sum_arrays:app",
    input=amounts,
)

SWITCHES = replace(
    COUNTING,
    name="switches_on_arrays",
    title="lamps in 2 batches, over whole arrays at a time: truth values in state",
    application="bettong.scenarios.applications.switches_on_arrays:app",
    input=lambda: b"hall\nattic\nhall\nhall\nattic\nhall",
    stream="lamps",
)

CHANGED = replace(
    COUNTING,
    name="counting_changed",
    title="sums in 3 batches, with other code and one state partition more after each restart",
    application="bettong.scenarios.applications.changing_sum:app",
    input=amounts,
    batch=2,
    classes={"protocol": "bettong.scenarios.corners:OtherCode"},
    judges_state=False,  # what a version has not counted yet depends on when it was started
)

IN_PARTS = replace(
    COUNTING,
    name="counting_in_parts",
    title="sums in 2 batches, the first of which is read and handed over in several parts",
    input=lambda: b"all,5\nall,10\nall,15\nall,5",
    frame=1,
    partitions=1,
    classes={
        "gateway": "bettong.scenarios.corners:SmallReplies",
        "sink": "bettong.scenarios.corners:SmallParts",
    },
)

RENAMED = replace(
    COUNTING,
    name="counting_renamed",
    title="sums in 2 batches, with steps and state fields renamed after the first restart",
    application="bettong.scenarios.applications.renamed_sum:app",
    input=lambda: b"one,5\ntwo,10\none,15",
    batch=2,
    frame=2,
    partitions=1,
    classes={"protocol": "bettong.scenarios.corners:OtherNames"},
)

RESCALED = replace(
    RENAMED,
    name="counting_rescaled",
    title="sums in 2 batches, which are kept in hundredths after the first restart",
    application="bettong.scenarios.applications.rescaled_sum:app",
    classes={"protocol": "bettong.scenarios.corners:OtherScale"},
)

RESCALED_TOTALS = replace(
    RESCALED,
    name="totals_rescaled",
    title="totals of all keys in 2 batches, told by ticks, which are kept in hundredths after the "
    "first restart",
    application="bettong.scenarios.applications.rescaled_totals:app",
    input=lambda: b"one,5\ntwo,10\none,15\none,20",
    classes={"protocol": "bettong.scenarios.corners:OtherScaleOfAll"},
)

VISITS = Scenario(
    "visits",
    "sessions, ticks, state that is forgotten and a dead letter: 11 lines in 2 batches, with one "
    "state partition more after each restart",
    "bettong.scenarios.applications.visits:app",
    visits,
    stream="visits",
    batch=6,
    frame=6,
    classes={"protocol": "bettong.scenarios.corners:OtherPartitions"},
    rows=VISITS_BY_HAND,
)

READINGS = Scenario(
    "readings",
    "windows of three kinds, late readings, keys and outputs that are bytes: 8 lines in 2 batches",
    "bettong.scenarios.applications.readings:app",
    readings,
    stream="readings",
    batch=4,
    frame=4,
    rows=READINGS_BY_HAND,
)

ACCOUNTS = replace(
    COUNTING,
    name="accounts",
    title="accounts in 2 batches, in each of which a step fails when it has changed one",
    application="bettong.scenarios.applications.accounts:app",
    input=bookings,
    partitions=1,
    rows=BOOKINGS_BY_HAND,
)

STATEMENTS = replace(
    ACCOUNTS,
    name="statements",
    title="accounts in 2 batches, all of which are told of time, where a step fails when it has "
    "changed one",
    application="bettong.scenarios.applications.statements:app",
    rows=STATEMENTS_BY_HAND,
)

BETWEEN_FOLDERS = replace(
    COUNTING,
    name="counting_between_folders",
    title="sums in 3 batches, of the lines of a folder's files, which become Arrow files",
    input=amounts,
    batch=2,
    frame=3,
    inputs="folder",
    outputs="arrow",
)

FOLDER_SHARED = replace(
    BETWEEN_FOLDERS,
    name="counting_shared_folder",
    title="sums in 2 batches, of the lines of a folder's files, which another driver takes when "
    "this one has looked, but one that came after it had",
    # which file is the first differs from run to run, and may; that the second is shorter shows
    # a file that is taken twice
    input=lambda: b"all,5\nall,5\nall,5",
    frame=2,
    partitions=1,
    classes={"protocol": "bettong.scenarios.beside:FilesTakenMeanwhile"},
)

PAST_NINE = replace(
    COUNTING,
    name="counting_past_nine",
    title="sums in 2 batches of files, where messages, segments of the journal and epochs come to "
    "have two digits",
    input=lambda: b"\n".join(b"all,%d" % n for n in range(1, 13)),
    batch=6,
    frame=1,
    partitions=1,
    outputs="files",
    classes={"protocol": "bettong.scenarios.beside:BegunLongAgo"},
    options={"gateway": ("--segment-bytes", "1")},
)

TOO_EARLY = replace(
    COUNTING,
    name="counting_too_early",
    title="sums in 2 batches, by a driver that looks for the messages of each before they have "
    "come, and once more when the stream has ended",
    input=amounts,
    classes={"protocol": "bettong.scenarios.beside:LooksTooEarly"},
)

LARGE = Scenario(
    "large_messages",
    "4 messages of 4.3 million bytes in 2 batches, read and prepared in several parts, with logs "
    "that begin a new segment after each record",
    "bettong.scenarios.applications.copies:app",
    large,
    batch=3,
    frame=1,
    partitions=1,
    # by its first record a segment says what is in the output, which is more than one read gives
    options={"gateway": ("--segment-bytes", "1"), "receiver": ("--segment-bytes", "1")},
)

SCENARIOS: Sequence[Scenario] = (
    ROLLING,
    ROLLING_TWO,
    ON_CREDIT,
    SWITCHES,
    AHEAD,
    REPARTITIONED,
    REPARTITIONED_TO_FILES,
    CHANGED,
    RENAMED,
    RESCALED,
    RESCALED_TOTALS,
    ON_ARRAYS,
    IN_PARTS,
    VISITS,
    READINGS,
    ACCOUNTS,
    STATEMENTS,
    BETWEEN_FOLDERS,
    FOLDER_SHARED,
    PAST_NINE,
    TOO_EARLY,
    LARGE,
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
