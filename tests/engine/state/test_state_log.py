"""The state log under damage, crashes at every point of its writes, and colliding hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from batch_run import Simulation, aligned
from hypothesis import given
from hypothesis import strategies as st

from bettong.engine import interpret, state_entity
from bettong.engine.batch import tasks
from bettong.engine.codecs.state import BytesCodec
from bettong.engine.keys import bounds, partition_of
from bettong.engine.state.compaction import merge, to_merge
from bettong.engine.state.entities import FileCache, load, save
from bettong.engine.state.files import Rows, StateFileError, open_rows, read_rows, write_rows
from bettong.engine.state.manifest import (
    Manifest,
    ManifestError,
    read_manifest,
    stored,
    take_epoch,
    write_manifest,
)
from bettong.engine.state.scan import scan
from bettong.engine.state.store import LocalStore, StoreError
from bettong.engine.storage.simulated import Image, SimulatedDisk
from bettong.lineage.errors import BettongError
from bettong.scenarios.applications.word_count import WordTotal, app

ROOT = Path("/log")
LINES = [b"They know they found it.", b"it is", b"they"]


@pytest.fixture(autouse=True)
def _no_open_files() -> Iterator[None]:
    tasks._caches.clear()
    yield
    tasks._caches.clear()


def store_on(disk: SimulatedDisk) -> LocalStore:
    return LocalStore(ROOT, disk)


def test_no_flipped_bit_of_a_state_file_passes() -> None:
    disk = SimulatedDisk()
    entry = save(
        state_entity(WordTotal), store_on(disk), "f", [b"sa", b"sb"], [9, 3], [WordTotal(1)] * 2
    )
    data = disk.image()[ROOT / "f"]
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        with pytest.raises(StateFileError, match="f is damaged"):
            read_rows(store_on(SimulatedDisk({ROOT / "f": damaged})), entry)
        with pytest.raises(StateFileError):
            read_rows(store_on(SimulatedDisk({ROOT / "f": data[:place]})), entry)
    with pytest.raises(StoreError):
        read_rows(store_on(SimulatedDisk()), entry)


def test_a_damaged_frame_of_a_state_file_is_named() -> None:
    disk = SimulatedDisk()
    entry = save(state_entity(WordTotal), store_on(disk), "f", [b"sa"], [9], [WordTotal(1)])
    data = disk.image()[ROOT / "f"]
    named = 0
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        try:
            open_rows(store_on(SimulatedDisk({ROOT / "f": damaged})), entry)
        except StateFileError as e:
            named += "state file f is not one" in str(e)
    assert named > 20


def test_no_flipped_bit_of_a_manifest_passes() -> None:
    disk = SimulatedDisk()
    manifest = Manifest("a", 0, 1, {"lines": 3}, (), {"totals": {0: 0}})
    write_manifest(store_on(disk), manifest)
    ((path, data),) = disk.image().items()
    assert read_manifest(store_on(disk), "a", 0) == manifest
    for place in range(len(data)):
        for bit in range(8):
            damaged = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
            with pytest.raises(ManifestError):
                read_manifest(store_on(SimulatedDisk({path: damaged})), "a", 0)
        with pytest.raises(ManifestError):
            read_manifest(store_on(SimulatedDisk({path: data[:place]})), "a", 0)


def test_a_manifest_of_another_application_is_refused() -> None:
    store = store_on(SimulatedDisk())
    write_manifest(store, Manifest("a", 0, 1, {}, ()))
    with pytest.raises(ManifestError, match="of application a, not of b"):
        read_manifest(store, "b", 0)
    with pytest.raises(ManifestError, match="no manifest of batch 1"):
        read_manifest(store, "a", 1)


def test_the_highest_epoch_counts_whenever_it_was_written() -> None:
    store = store_on(SimulatedDisk())
    write_manifest(store, Manifest("a", 0, 2, {"lines": 2}, ()))
    write_manifest(store, Manifest("a", 0, 1, {"lines": 1}, ()))
    assert read_manifest(store, "a", 0).epoch == 2


class _Crash(BaseException):
    """The machine stops."""


def test_a_crash_at_any_point_of_any_write_loses_and_doubles_nothing() -> None:
    """A crash after each change of the disk, in each state that it could leave; then the batch
    that was under way is done again on what is left."""
    expected = interpret(app, {"lines": LINES})
    outputs = sorted((o.id, o.key, o.data) for o in expected.outputs)
    changes = _changes_of_a_run()
    images: set[object] = set()
    for crash_at in range(1, changes + 1):
        simulation, disk, done = _run_until(crash_at)
        for image in list(disk.images()):
            seen = (done, len(simulation.sinks["totals"].committed), _readable(image))
            if seen in images:
                continue
            images.add(seen)
            tasks._caches.clear()
            again = Simulation(
                app,
                store_on(SimulatedDisk(image)),
                simulation.streams,
                2,
                1,
                sinks={"totals": _copy(simulation)},
            )
            _finish(again, done)
            rows = again.sinks["totals"].rows
            assert sorted(rows) == outputs, f"crash after change {crash_at}"
    assert len(images) > 30


def _readable(image: Image) -> frozenset[tuple[Path, bytes]]:
    """What of a disk can make a difference: not the content of files that nothing names."""
    reported = b"".join(content for path, content in image.items() if path.suffix == ".json")
    return frozenset(
        (path, content if path.suffix == ".json" or path.name.encode() in reported else b"")
        for path, content in image.items()
    )


def _copy(simulation: Simulation):  # type: ignore[no-untyped-def]
    sink = simulation.sinks["totals"]
    return type(sink)(sink.epoch, {}, dict(sink.committed))


def _simulation(disk: SimulatedDisk) -> Simulation:
    tasks._caches.clear()
    return Simulation(app, store_on(disk), {"lines": LINES}, partitions=2, read_slices=1)


def _changes_of_a_run() -> int:
    count = 0

    def changed() -> None:
        nonlocal count
        count += 1

    simulation = _simulation(SimulatedDisk(on_change=changed))
    simulation.run(aligned(simulation.streams, 1))
    return count


def _run_until(crash_at: int) -> tuple[Simulation, SimulatedDisk, int]:
    """A run that stops at a change, and how many batches Spark had recorded as done."""
    count = 0

    def changed() -> None:
        nonlocal count
        count += 1
        if count == crash_at:
            raise _Crash

    disk = SimulatedDisk(on_change=changed)
    simulation = _simulation(disk)
    done = 0
    try:
        protocol = simulation.start()
        before: dict[str, int] = {}
        for number, end in enumerate(aligned(simulation.streams, 1)):
            simulation.batch(protocol, number, before, end)
            before, done = end, number + 1
    except _Crash:
        pass
    return simulation, disk, done


def _finish(simulation: Simulation, done: int) -> None:
    ends = aligned(simulation.streams, 1)
    protocol = simulation.start()
    for number in range(done, len(ends)):
        before = ends[number - 1] if number else {}
        simulation.batch(protocol, number, before, ends[number])


def test_starts_at_the_same_time_get_different_epochs() -> None:
    disk = SimulatedDisk()
    assert [take_epoch(store_on(disk), "driver") for _ in range(3)] == [1, 2, 3]
    assert not store_on(disk).create("epochs/000003.json", b"")


@dataclass
class Note:
    text: str = ""


@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=2)), unique=True, min_size=1),
    st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=2)), unique=True, min_size=1),
)
def test_keys_are_found_in_either_file_though_hashes_collide(
    written: list[tuple[int, bytes]], sought: list[tuple[int, bytes]]
) -> None:
    store = store_on(SimulatedDisk())
    declared = state_entity(Note)
    values = {pair: Note(repr(pair)) for pair in written}
    files = [
        save(
            declared,
            store,
            name,
            [k for _, k in part],
            [h for h, _ in part],
            [values[pair] for pair in part],
        )
        for name, part in (("new", written[::2]), ("old", written[1::2]))
        if part
    ]
    found = load(declared, FileCache(store), files, [k for _, k in sought], [h for h, _ in sought])
    assert found == [values.get(pair, Note()) for pair in sought]


def test_newer_files_count_and_gone_entities_are_made_anew() -> None:
    store = store_on(SimulatedDisk())
    declared = state_entity(Note)
    old = save(declared, store, "old", [b"sa", b"sb"], [1, 2], [Note("a"), Note("b")])
    new = save(declared, store, "new", [b"sa"], [1], [None])
    cache = FileCache(store)
    assert load(declared, cache, [new, old], [b"sa", b"sb"], [1, 2]) == [Note(), Note("b")]


def test_a_file_that_is_no_state_file_is_refused() -> None:
    store = store_on(SimulatedDisk())
    rows = Rows(np.array([1], np.uint64), pa.array([b"s"]), pa.array([b"x"]), 1)
    entry = write_rows(store, "f", "S", rows)
    store.publish("f", b"x" * entry.length)
    import zlib
    from dataclasses import replace

    with pytest.raises(BettongError, match="f is not one"):
        read_rows(store, replace(entry, crc=zlib.crc32(b"x" * entry.length)))


def test_a_codec_of_the_users_own_reads_older_versions() -> None:
    store = store_on(SimulatedDisk())
    first = BytesCodec(lambda n: n.text.encode(), lambda data, version: Note(data.decode()))
    second = BytesCodec(
        lambda n: b"2" + n.text.encode(),
        lambda data, version: Note(data.decode() if version == 1 else data[1:].decode()),
        version=2,
    )
    entry = save(state_entity(Note, codec=first), store, "f", [b"sa"], [1], [Note("a")])
    assert load(state_entity(Note, codec=second), FileCache(store), [entry], [b"sa"], [1]) == [
        Note("a")
    ]


rows_of_files = st.lists(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.binary(max_size=1)),
        st.none() | st.text(max_size=2),
        min_size=1,
    ),
    min_size=1,
    max_size=4,
)


@given(rows_of_files, st.booleans())
def test_a_merge_keeps_the_newest_of_each_key(
    files: list[dict[tuple[int, bytes], str | None]], oldest: bool
) -> None:
    store = store_on(SimulatedDisk())
    declared = state_entity(Note)
    entries = [
        save(
            declared,
            store,
            f"{i}",
            [k for _, k in rows],
            [h for h, _ in rows],
            [None if text is None else Note(text) for text in rows.values()],
        )
        for i, rows in enumerate(files)
    ]
    merged = merge(declared, store, entries, "merged", oldest)
    newest: dict[tuple[int, bytes], str | None] = {}
    for rows in reversed(files):
        newest |= rows
    keys = sorted(newest)
    found = load(declared, FileCache(store), [merged], [k for _, k in keys], [h for h, _ in keys])
    assert found == [Note(newest[k] or "") for k in keys]
    read = read_rows(store, merged)
    placed = list(zip(read.hashes.tolist(), read.keys.to_pylist(), strict=True))
    assert placed == sorted(set(placed))
    if not oldest:
        assert set(placed) == set(newest)
    assert merged.tier == 1


def test_files_are_merged_in_tiers_and_old_ones_go() -> None:
    disk = SimulatedDisk()
    lines = [b"a b c"] * 40
    simulation = Simulation(app, store_on(disk), {"lines": lines}, 1, 1, fan_in=3)
    manifest = simulation.run(aligned(simulation.streams, 1))
    assert max(Counter(f.tier for f in manifest.files).values()) <= 3
    entities = simulation.entities(manifest, "WordTotal", ["a", "b", "c"])
    assert entities == dict.fromkeys("abc", WordTotal(40))
    kept = [p for p in disk.image() if p.suffix == ".arrow"]
    assert len(kept) < 15
    assert [b for b, _ in stored(store_on(disk))] == [38, 39]


def test_partitions_may_change_while_files_of_other_partitions_are_left() -> None:
    disk = SimulatedDisk()
    lines = [b"a b c d e f g h"] * 30
    simulation = Simulation(app, store_on(disk), {"lines": lines}, 5, 1)
    ends = aligned(simulation.streams, 1)
    simulation.run(ends[:10])
    for start, partitions in ((10, 2), (20, 7)):
        simulation.partitions = partitions
        protocol = simulation.start()
        for number in range(start, start + 10):
            manifest = simulation.batch(protocol, number, ends[number - 1], ends[number])
    entities = simulation.entities(manifest, "WordTotal", list("abcdefgh"))
    assert entities == dict.fromkeys("abcdefgh", WordTotal(30))


def test_a_hash_at_the_edge_of_a_partition_belongs_to_the_one_that_begins_there() -> None:
    """No key with such a hash is known: it would take some 10^13 tries to find one."""
    state, store = state_entity(WordTotal), store_on(SimulatedDisk())
    (low, edge), (_, high) = bounds(1, 3), bounds(2, 3)
    hashes = [low, edge - 1, edge, high - 1]
    assert [partition_of(hashed, 3) for hashed in hashes] == [1, 1, 2, 2]
    keys = [b"sa", b"sb", b"sc", b"sd"]
    entry = save(state, store, "f", keys, hashes, [WordTotal(n) for n in range(4)])
    found = [scan(state, FileCache(store), [entry], *bounds(p, 3)).keys for p in range(3)]
    assert found == [[], keys[:2], keys[2:]]
    one = [
        save(state, store, key.decode(), [key], [hashed], [WordTotal()])
        for key, hashed in zip(keys, hashes, strict=True)
    ]
    manifest = Manifest("a", 0, 1, {}, tuple(one))
    for partition, own in enumerate([[], one[:2], one[2:]]):
        files = manifest.files_of(state.name, *bounds(partition, 3))
        assert list(files) == own
        assert list(to_merge(files, *bounds(partition, 3), 2)) == own
