"""Small scenarios of what otherwise only long runs, large messages or rare events come to: so that
the search fires there too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.engine.batch.job import Job
from bettong.engine.batch.protocol import BatchProtocol, Settings
from bettong.engine.state.inline import InlineExecutor
from bettong.engine.state.manifest import Manifest, current_epoch
from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.applications import changing_sum
from bettong.scenarios.counting import COUNTING

_LARGE = 4_300_000  # more than one answer of the gateway and one part of a prepare hold


def amounts() -> bytes:
    """Six numbers of three keys."""
    return b"one,5\ntwo,10\nthree,15\none,5\ntwo,10\nthree,15"


def visits() -> bytes:
    """Two users with a silence between, and a line that is none."""
    return b"1,ann\n3,bob\n5,ann\nnot a visit\n40,bob\n42,ann\n44,bob\n90,ann"


def readings() -> bytes:
    """Readings of two sensors, of which one joins two runs and one comes late."""
    return b"7,10,1\n7,45,2\n7,28,4\n8,5,8\n7,70,16\n7,20,32\n8,65,64\n7,130,200"


def large() -> bytes:
    """Four messages of some millions of bytes."""
    return b"\n".join(letter * _LARGE for letter in (b"a", b"b", b"c", b"d"))


class OtherPartitions(BatchProtocol):
    """Takes up its work after each restart with one state partition more."""

    def job(self, batch: int, base: Manifest) -> Job:
        """What a batch has to do."""
        job = super().job(batch, base)
        return replace(job, partitions=job.partitions + self.epoch - 1)


class MergingFiles(BatchProtocol):
    """Merges the state files of a partition as soon as there are two, before the next batch begins,
    and keeps no more versions of the state than have to be there."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            replace(settings, keep_versions=2, fan_in=2, housekeeping=InlineExecutor())
        )


class OtherCode(BatchProtocol):
    """Takes up its work after each restart with the next version of the application's code, and
    with one state partition more."""

    def __init__(self, settings: Settings) -> None:
        start = current_epoch(settings.store)
        app = changing_sum.versions[min(start, len(changing_sum.versions) - 1)]
        super().__init__(replace(settings, app=app, partitions=settings.partitions + start))


ROLLING = replace(
    COUNTING,
    name="counting_rolling",
    title="sums in 3 batches, with journals that begin a new segment after each record",
    input=amounts,
    batch=2,
    frame=1,
    options={"gateway": ("--segment-bytes", "1"), "receiver": ("--segment-bytes", "1")},
)

ON_CREDIT = replace(
    COUNTING,
    name="counting_on_credit",
    title="sums in 3 batches, with a gateway that takes two messages ahead and no more",
    input=amounts,
    batch=2,
    frame=1,
    options={"gateway": ("--max-unreleased", "2")},
)

REPARTITIONED = replace(
    COUNTING,
    name="counting_repartitioned",
    title="sums in 2 batches, with one state partition more after each restart",
    input=amounts,
    classes={"protocol": "bettong.scenarios.corners:OtherPartitions"},
)

MERGING = replace(
    COUNTING,
    name="counting_merging",
    title="sums in 4 batches, with state files that are merged two at a time",
    input=lambda: amounts() + b"\none,20\ntwo,25",
    batch=2,
    frame=2,
    classes={"protocol": "bettong.scenarios.corners:MergingFiles"},
)

ON_ARRAYS = replace(
    COUNTING,
    name="counting_on_arrays",
    title="sums in 2 batches, over whole arrays at a time",
    application="bettong.scenarios.applications.running_sum_arrays:app",
    input=amounts,
)

CHANGED = replace(
    COUNTING,
    name="counting_changed",
    title="sums in 3 batches, with other code and one state partition more after each restart",
    application="bettong.scenarios.applications.changing_sum:app",
    input=amounts,
    batch=2,
    classes={"protocol": "bettong.scenarios.corners:OtherCode"},
)

VISITS = Scenario(
    "visits",
    "sessions, ticks, state that is forgotten and a dead letter: 8 lines in 2 batches",
    "bettong.scenarios.applications.visits:app",
    visits,
    stream="visits",
    batch=4,
    frame=4,
)

READINGS = Scenario(
    "readings",
    "windows of three kinds, late readings, keys and outputs that are bytes: 8 lines in 2 batches",
    "bettong.scenarios.applications.readings:app",
    readings,
    stream="readings",
    batch=4,
    frame=4,
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

LARGE = Scenario(
    "large_messages",
    "4 messages of 4.3 million bytes in 2 batches, read and prepared in several parts",
    "bettong.scenarios.applications.copies:app",
    large,
    batch=3,
    frame=1,
    partitions=1,
)

SCENARIOS: Sequence[Scenario] = (
    ROLLING,
    ON_CREDIT,
    REPARTITIONED,
    CHANGED,
    MERGING,
    ON_ARRAYS,
    VISITS,
    READINGS,
    BETWEEN_FOLDERS,
    LARGE,
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
