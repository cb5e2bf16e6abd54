"""Single faults in turn: those that show the most for the time they take come the most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace

import pytest

from bettong.harness.faults.fault import DiskCall
from bettong.harness.faults.kinds import (
    Crash,
    CrashWriting,
    Duplicate,
    Fault,
    Omit,
    Pause,
    PowerCut,
    Stall,
    Storage,
)
from bettong.harness.faults.point import Point
from bettong.harness.search.occurrences import Occurrence, Reading
from bettong.harness.search.turns import in_turn, sort_of
from bettong.harness.search.whole_run import WholeRun


def at(step: str) -> Point:
    return Point(step, "before", 1)


APPENDED = [f"gateway.append/amounts/{n}" for n in range(3)]
CUTS: list[Fault] = [
    PowerCut("gateway", at(step), 1, keep) for step in APPENDED for keep in ("nothing", "names")
]
COMMIT = PowerCut("receiver", at("receiver.commit/batch=0"), 1, "nothing")
PAUSE = Pause("gateway", at(APPENDED[0]))


def test_each_sort_has_its_turn_the_latest_first_then_each_of_its_ways() -> None:
    acked = PowerCut("gateway", at("gateway.ack/amounts/2"), 1, "nothing")
    cuts = [CUTS[n].id for n in (4, 5, 2, 3, 0, 1)]
    assert in_turn([acked, *CUTS]) == [cuts[0], acked.id, *cuts[1:]]
    assert in_turn([*CUTS, acked]) == [acked.id, *cuts]


def test_each_kind_and_each_node_has_its_turn_before_another_fault_of_any() -> None:
    lost = [Omit("driver->gateway", at(f"batch={n}/source.commit")) for n in range(2)]
    again = [Duplicate("driver->gateway", at(f"batch={n}/source.commit")) for n in range(2)]
    first = [CUTS[4].id, COMMIT.id, lost[1].id, again[1].id]
    found = in_turn([*CUTS[4:], COMMIT, *lost, *again])
    assert sorted(found[:4]) == sorted(first)


def of_each(*kinds: Callable[[Point], Fault]) -> list[str]:
    """Faults of some kinds in turn, each at the same twelve steps, by kind and node."""
    faults = [kind(at(f"batch={n}/sink.commit")) for kind in kinds for n in range(12)]
    named = {fault.id: f"{fault.kind} {fault.nodes[0]}" for fault in faults}
    return [named[id] for id in in_turn(faults)]


def test_what_has_shown_the_most_mistakes_is_tried_the_most_often() -> None:
    found = of_each(partial(Crash, "gateway"), partial(Storage, errno="EIO", node="gateway"))
    assert Counter(found[:11]) == {"crash gateway": 8, "storage gateway": 3}


def test_all_that_is_done_again_is_done_by_the_driver() -> None:
    found = of_each(partial(Crash, "gateway"), partial(Crash, "driver"))
    assert Counter(found[:12]) == {"crash driver": 8, "crash gateway": 4}


def test_what_takes_long_is_tried_seldom() -> None:
    found = of_each(partial(Pause, "gateway"), partial(Pause, "driver"))
    assert Counter(found[:7]) == {"pause driver": 6, "pause gateway": 1}


def test_calls_to_the_disk_fail_in_each_way_before_a_second_one_fails_in_any() -> None:
    written = [Storage(at(APPENDED[0]), code, call) for call in (1, 2) for code in ("EIO", "SHORT")]
    assert in_turn(written) == [written[n].id for n in (0, 1, 2, 3)]


def test_each_call_of_a_step_fails_before_one_of_them_fails_at_another_message() -> None:
    """Another call is another statement; at another message it is the same one once more."""
    calls = [Storage(at(step), "EIO", call) for step in APPENDED[:2] for call in (1, 2)]
    reads = [Storage(at(step), "EIO", read=read) for step in APPENDED[:2] for read in (1, 2)]
    syncs = [PowerCut("gateway", at(step), sync) for step in APPENDED[:2] for sync in (1, 2)]
    writing = [CrashWriting("gateway", at(step), sync) for step in APPENDED[:2] for sync in (1, 2)]
    for faults in (calls, reads, syncs, writing):
        assert in_turn(faults) == [faults[n].id for n in (2, 3, 0, 1)]


def test_the_end_of_a_stream_has_a_turn_beside_its_messages() -> None:
    end = "gateway.append/amounts/end"
    for kind in (partial(Crash, "gateway"), partial(Storage, errno="EIO", call=1)):
        faults = [kind(at(step)) for step in (*APPENDED, end)]
        assert in_turn(faults) == [faults[n].id for n in (3, 2, 1, 0)]
        again = [kind(Point(end, "before", n)) for n in (1, 2)]
        assert in_turn([*faults[:3], *again])[:2] == [again[1].id, faults[2].id]


def leaves(step: str) -> list[Pause]:
    taken = SimpleNamespace(step=step, number=1, node="driver")
    return list(Pause.leaves("begins", taken, SimpleNamespace()))  # type: ignore[arg-type]


READ = "/p=0/a=0/source.read#2"


@pytest.mark.parametrize(
    ("step", "until"),
    [
        ("epoch=1/take", ["after epoch=1/take#2"]),
        ("batch=1/source.note", ["after batch=1/source.wait#2"]),
        ("batch=1/sink.commit/sums", [f"batch=1{READ}", "batch=1/sink.commit/sums#2"]),
        ("batch=0/p=1/a=0/sink.prepare", [f"batch=0{READ}", "batch=0/p=1/a=0/sink.prepare#2"]),
        (
            "batch=0/level=2/p=1/a=0/sink.prepare",
            [f"batch=0{READ}", "batch=0/level=2/p=1/a=0/sink.prepare#2"],
        ),
        ("epoch=1/sink.open/sums", ["batch=0/sink.commit/sums"]),
        ("epoch=2/sink.open", []),
        ("batch=1/p=0/a=0/source.read", []),
    ],
)
def test_a_driver_goes_on_beside_another_where_both_change_something(
    step: str, until: list[str]
) -> None:
    replaced, *beside = leaves(step)
    assert (replaced.start, replaced.until, replaced.replace) == (Point(step), None, True)
    assert [pause.id for pause in beside] == [
        f"pause(driver, from {step} until {moment}, replaced)" for moment in until
    ]


APPENDED_NEW = [DiskCall(1, "open"), DiskCall(2, "append"), DiskCall(3, "sync")]
LINKED = [*APPENDED_NEW, DiskCall(4, "link"), DiskCall(5, "remove"), DiskCall(6, "link")]
RENAMED = [*APPENDED_NEW, DiskCall(4, "rename"), DiskCall(5, "sync-directory")]


@pytest.mark.parametrize(
    ("step", "node", "calls", "call"),
    [
        ("epoch=1/take", "driver", LINKED, 4),
        ("epoch=2/take", "driver", RENAMED, 4),
        ("batch=1/source.note", "driver", RENAMED, 4),
        ("batch=1/sink.commit/sums", "driver", LINKED, 4),
        ("batch=1/source.note", "driver", APPENDED_NEW, 0),
        ("receiver.commit/batch=1", "receiver", LINKED, 0),
    ],
)
def test_a_driver_has_looked_and_makes_what_its_successor_has_made_meanwhile(
    step: str, node: str, calls: Sequence[DiskCall], call: int
) -> None:
    taken = SimpleNamespace(step=step, number=2, node=node, calls=calls)
    found = list(Pause.leaves("lives after", taken, SimpleNamespace()))  # type: ignore[arg-type]
    within = f"from {step}#2, call {call} until after {step}#3"
    assert [pause.id for pause in found] == [f"pause({node}, {within}, replaced)"][: bool(call)]


def test_a_driver_has_looked_whether_it_was_replaced_and_publishes_when_all_is_done() -> None:
    taken = SimpleNamespace(step="batch=1/state.manifest", number=1, node="driver", calls=RENAMED)
    run = SimpleNamespace(opened_next=lambda step: None)
    found = list(Pause.leaves("lives after", taken, run))  # type: ignore[arg-type]
    assert [pause.id for pause in found] == [
        "pause(driver, from batch=1/state.manifest, call 4, replaced)"
    ]


@pytest.mark.parametrize(
    ("step", "until"),
    [
        ("epoch=1/sink.open", "batch=0/sink.commit"),
        ("epoch=1/sink.open/sums", "batch=0/sink.commit/sums"),
        ("batch=1/p=0/a=0/sink.prepare", "batch=1/sink.commit"),
        ("batch=1/p=0/a=0/sink.prepare/sums", "batch=1/sink.commit/sums"),
    ],
)
def test_a_driver_has_looked_at_a_sink_of_files_and_writes_when_its_successor_is_about_to_commit(
    step: str, until: str
) -> None:
    taken = SimpleNamespace(step=step, number=1, node="driver", calls=RENAMED)
    found = list(Pause.leaves("lives after", taken, SimpleNamespace()))  # type: ignore[arg-type]
    assert [pause.id for pause in found] == [
        f"pause(driver, from {step}, call 1 until {until}, replaced)"
    ]
    assert found[0].variety == "within, beside"


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        ("epoch=1/sink.open", []),  # at a receiver, which writes itself
        ("epoch=2/sink.open", RENAMED),
        ("batch=1/p=0/a=0/sink.prepare", []),
        ("batch=1/p=0/a=0/state.write", RENAMED),
    ],
)
def test_where_a_driver_writes_no_files_of_a_sink_it_does_not_go_on_within_a_step(
    step: str, calls: Sequence[DiskCall]
) -> None:
    taken = SimpleNamespace(step=step, number=1, node="driver", calls=calls)
    assert not list(Pause.leaves("lives after", taken, SimpleNamespace()))  # type: ignore[arg-type]


@pytest.mark.parametrize("sinks", [("",), ("/shown", "/counted")])
def test_it_publishes_and_commits_when_its_successor_has_looked_and_is_about_to_begin(
    sinks: Sequence[str],
) -> None:
    taken = ["epoch=1/take", *(f"epoch=1/sink.open{sink}" for sink in sinks)]
    taken += ["batch=1/state.manifest", "epoch=2/take", f"epoch=2/sink.open{sinks[0]}"]
    reading = Reading([Occurrence(s, 1, "driver", 1, None, at) for at, s in enumerate(taken)])
    manifest = next(o for o in reading.occurrences if o.step == "batch=1/state.manifest")
    manifest.calls.extend(RENAMED)
    whole_run = WholeRun(reading)
    when_all_is_done, amid = Pause.leaves("lives after", manifest, whole_run)
    assert when_all_is_done.until is None
    assert amid.id == (
        "pause(driver, from batch=1/state.manifest, call 4 "
        f"until epoch=2/sink.open{sinks[0]}, replaced)"
    )
    assert amid.steps_first == 2  # the manifest, and the first commit
    assert amid.variety != when_all_is_done.variety  # each has a turn of its own
    assert whole_run.opened_next(reading.occurrences[0]) is None


@pytest.mark.parametrize("sink", ["", "/doubled"])
def test_a_late_request_comes_when_more_has_been_done_at_the_same_sink(sink: str) -> None:
    opened, *commits = (
        f"receiver.open/epoch=1{sink}",
        *(f"receiver.commit/batch={batch}{sink}" for batch in range(2)),
    )
    taken = [opened, "receiver.commit/batch=0/other", commits[0], "receiver.commit/batch=1/other"]
    taken += ["batch=1/commits", commits[1]]
    reading = Reading([Occurrence(s, 1, "receiver", 1, None, at) for at, s in enumerate(taken)])
    found = map(WholeRun(reading).overtaken_by, reading.occurrences)
    met = [Point(commits[0], "before"), Point("receiver.commit/batch=1/other", "after")]
    assert list(found) == [*met, Point(commits[1], "after"), None, None, None]


def test_a_late_release_comes_when_more_of_the_same_stream_has_been_released() -> None:
    taken = ["gateway.release/a/2", "gateway.release/b/2", "gateway.append/a/5"]
    taken += ["gateway.release/a/5"]
    occurrences = [Occurrence(s, 1, "gateway", 1, None, at) for at, s in enumerate(taken)]
    occurrences.insert(3, Occurrence(taken[0], 2, "gateway", 1, None, 9))
    found = map(WholeRun(Reading(occurrences)).overtaken_by, occurrences)
    later = Point("gateway.release/a/5", "after")
    assert list(found) == [later, None, None, later, None]


@pytest.mark.parametrize(
    ("step", "first"),
    [
        ("batch=0/sink.commit", [2, 1]),  # refused, it is to end; what it does instead comes first
        ("batch=0/source.commit", [1, 1]),
        ("epoch=1/take", [0]),
        ("epoch=1/sink.open", [1]),
    ],
)
def test_who_goes_on_beside_another_comes_first_with_its_step_or_what_follows_too(
    step: str, first: list[int]
) -> None:
    replaced, *beside = leaves(step)
    assert replaced.steps_first == 0
    assert [pause.steps_first for pause in beside] == first


def test_two_drivers_at_once_are_tried_before_a_second_pause_of_the_same_kind() -> None:
    pauses = [pause for n in range(2) for pause in leaves(f"batch={n}/source.note")]
    assert in_turn(pauses) == [pauses[n].id for n in (2, 3, 0, 1)]


def test_sorts_differ_by_kind_by_what_they_hit_and_by_the_shape_of_the_step() -> None:
    crash = Crash("gateway", at(APPENDED[0]))
    assert sort_of(crash) == ("crash", ("gateway",), "gateway.append/STREAM/N")
    omit = Omit("driver->gateway", at("batch=0/source.commit"))
    assert sort_of(omit) == ("omit", ("driver->gateway",), "batch=N/source.commit")


COMMITTED = [DiskCall(1, "append"), DiskCall(2, "sync"), DiskCall(3, "append"), DiskCall(4, "sync")]
NAMED = [*RENAMED, DiskCall(6, "append"), DiskCall(7, "sync"), DiskCall(8, "sync")]


@pytest.mark.parametrize(
    ("calls", "stalls"),
    [(COMMITTED, [2, 4]), (NAMED, [3, 7]), ([DiskCall(1, "sync directory")], [1]), ([], [])],
)
def test_a_thread_stands_still_before_it_waits_for_each_file_that_it_has_written(
    calls: Sequence[DiskCall], stalls: Sequence[int]
) -> None:
    """What one lock guards of the first file, another may have to guard of the next."""
    step = "receiver.commit/batch=1"
    taken = SimpleNamespace(step=step, number=1, node="receiver", calls=calls)
    again = Point("batch=1/sink.commit", "before", 2)
    later = Point("receiver.commit/batch=2", "after")
    run = SimpleNamespace(tried_again=lambda step: again, overtaken_by=lambda step: later)
    found = list(Stall.leaves("ends", taken, run))  # type: ignore[arg-type]
    assert [stall.id for stall in found] == [
        *(
            f"stall(receiver, {step}, call {call} until before batch=1/sink.commit#3)"
            for call in stalls
        ),
        *(
            f"stall(receiver, {step}, call {call} met by before batch=1/sink.commit#2)"
            for call in stalls[:1]
        ),
        f"stall(receiver, {step} until before {step}#2)",
        f"stall(receiver, {step} until {later})",
    ]
    assert len({stall.variety for stall in found}) == len(found)  # each has a turn of its own


def test_who_makes_room_for_a_client_does_so_once() -> None:
    """The second one that asks for it waits, or finds it: it never comes to that step."""
    step, again = "gateway.create/lines", Point("sender.connect/lines", "before", 2)
    taken = SimpleNamespace(step=step, number=1, node="gateway", calls=NAMED)
    run = SimpleNamespace(tried_again=lambda step: again, overtaken_by=lambda step: None)
    found = list(Stall.leaves("ends", taken, run))  # type: ignore[arg-type]
    assert found and all(stall.call for stall in found)
