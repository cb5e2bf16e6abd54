"""State files that are merged, and what else goes on while that is done: keys that collide, keys
that are forgotten, another number of state partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bettong.harness.catalog import CatalogEntry, given
from bettong.harness.scenario import Scenario
from bettong.scenarios.counting import COUNTING

COLLIDING = (b"0418ce3bf19631ca", b"bc2ab3333b69a757")
"""Two keys with the same hash, of 64 bits of BLAKE2b: found by some 10^9 tries."""


def colliding() -> bytes:
    """Numbers of two keys with the same hash, and of one beside them."""
    one, other = COLLIDING
    keys = (one, other, one, b"alone", other, one, other, b"alone")
    return b"\n".join(b"%s,%d" % (key, n) for n, key in enumerate(keys, 1))


def quiet_amounts() -> bytes:
    """Amounts of three keys, two of which are silent for so long that they are forgotten."""
    return (
        b"ann,1,1\nbob,3,2\nann,12,4\nbob,14,8\neve,41,16\neve,42,32\nann,43,64\neve,45,128\n"
        b"eve,46,256\nann,53,512"
    )


QUIET_BY_HAND = {
    "amounts/2.0.0": "from 0 to 10: 1",
    "amounts/3.0.0": "from 0 to 10: 2",
    "amounts/5.1.368341355.1757475340.1610612736.0": "from 10 to 20: 8",
    "amounts/5.1.368341355.1757475340.1610612736.1": "forgotten",
    "amounts/5.1.1070017934.1889350135.0.0": "from 10 to 20: 4",
    "amounts/5.1.1070017934.1889350135.0.1": "forgotten",
    "amounts/9.0.0": "from 40 to 50: 64",
    "amounts/9.1.556715632.966238044.1073741824.0": "from 40 to 50: 432",
}
"""What they lead to: windows that end with an amount, and by a tick those of bob, ann and eve, in
the order of their hashes."""


def visits_again() -> bytes:
    """Visits of a user who comes again when she is forgotten, among others. What says that she is
    gone is merged with what is known of "bob", whose hash is beside hers, while a file that was
    written for one state partition still has her."""
    return (
        b"1,ann\n2,cid\n20,bob\n21,cid\n30,cid\n31,cid\n32,cid\n33,cid\n34,ann\n34,cid\n35,ann\n"
        b"36,cid"
    )


AGAIN_BY_HAND = {
    "visits/0.0.0@counts": "ann was here 1 times",
    "visits/1.0.0@counts": "cid was here 1 times",
    "visits/2.0.0@counts": "bob was here 1 times",
    "visits/2.1.1070017934.1889350135.0.0@ended": "1 pages from 1 to 11",
    "visits/2.1.1669005907.635947456.1610612736.0@ended": "1 pages from 2 to 12",
    "visits/3.0.0@counts": "cid was here 2 times",
    "visits/4.0.0@counts": "cid was here 3 times",
    "visits/5.0.0@counts": "cid was here 4 times",
    "visits/5.1.368341355.1757475340.1610612736.0@ended": "1 pages from 20 to 30",
    "visits/5.1.1070017934.1889350135.0.0@counts": "1 are forgotten",
    "visits/6.0.0@counts": "cid was here 5 times",
    "visits/7.0.0@counts": "cid was here 6 times",
    "visits/8.0.0@counts": "ann was here 1 times",
    "visits/9.0.0@counts": "cid was here 7 times",
    "visits/10.0.0@counts": "ann was here 2 times",
    "visits/11.0.0@counts": "cid was here 8 times",
}
"""What they lead to: a session ends ten seconds after its last visit, by a tick at each third one;
who has been away for more than 25 seconds is forgotten by the next tick."""

MERGING = replace(
    COUNTING,
    name="counting_merging",
    title="sums in 4 batches, with state files that are merged two at a time",
    # "two" is read again only from a file that was merged with another key in it
    input=lambda: b"one,5\ntwo,10\nthree,15\none,5\nthree,10\none,15\ntwo,20\none,25",
    batch=2,
    frame=2,
    classes={"protocol": "bettong.scenarios.beside:MergingFiles"},
    versions=2,
    batches=3,  # the third is the first that names a merged file
)

MERGING_BESIDE = replace(
    MERGING,
    name="counting_merging_beside",
    title="sums in 4 batches, with state files that are merged when the next batch has begun",
    classes={"protocol": "bettong.scenarios.beside:MergingBeside"},
)

MERGING_APART = replace(
    MERGING,
    name="counting_merging_apart",
    title="sums in 4 batches, with state files that are merged when the next batch's are written, "
    "and one state partition more after each restart",
    # the second batch writes "one" and "two" into one file, which three partitions share
    input=lambda: b"one,5\none,10\none,15\ntwo,5\none,10\ntwo,20\nthree,5\ntwo,25",
    classes={"protocol": "bettong.scenarios.beside:MergingApart"},
)

MERGING_RESCALED = replace(
    MERGING,
    name="counting_merging_rescaled",
    title="sums in 4 batches, with state files that are merged two at a time, and with sums in "
    "hundredths after the first restart",
    application="bettong.scenarios.applications.rescaled_sum:app",
    # "two" is in the file of the first version alone that is merged with those of the second
    input=lambda: b"two,5\none,10\none,15\none,5\none,1\none,2\ntwo,20\none,3",
    partitions=1,
    classes={"protocol": "bettong.scenarios.beside:RescaledMerging"},
    batches=2,
)

COLLIDED = replace(
    MERGING,
    name="counting_collided",
    title="sums in 4 batches, of three keys of which two have the same hash",
    input=colliding,
)

FORGETTING = replace(
    MERGING,
    name="forgetting_merging",
    title="windows of keys that are forgotten, in 5 batches, with state files that are merged two "
    "at a time",
    application="bettong.scenarios.applications.quiet_sums:app",
    # what says that "bob" is gone is merged while an older file, merged before, still has him
    input=quiet_amounts,
    partitions=1,
    rows=QUIET_BY_HAND,
)

FORGETTING_APART = replace(
    MERGING_APART,
    name="forgetting_merging_apart",
    title="visits of users who are forgotten, in 6 batches, with state files that are merged when "
    "the next batch's are written, and one state partition more after each restart",
    application="bettong.scenarios.applications.visits:app",
    stream="visits",
    input=visits_again,
    partitions=1,
    batches=2,
    rows=AGAIN_BY_HAND,
)

SCENARIOS: Sequence[Scenario] = (
    MERGING,
    MERGING_BESIDE,
    MERGING_APART,
    MERGING_RESCALED,
    COLLIDED,
    FORGETTING,
    FORGETTING_APART,
)


def entries() -> list[CatalogEntry]:
    """What the catalog says of them."""
    return [CatalogEntry(s.name, "scenario", s.title, given(s)) for s in SCENARIOS]
