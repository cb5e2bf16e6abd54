"""Which faults of real runs are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Omit, OmitReply, PowerCut, Storage
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.registry import to_entry
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import StepId
from bettong.harness.search.equivalence import FaultEquivalence, recovery_of, same_crashes
from bettong.harness.search.leaves import Batches
from bettong.harness.search.occurrences import read_occurrences
from bettong.harness.search.read_run import CleanRun, RunReader, opaque
from bettong.harness.search.trace_lineage import lineage_of
from bettong.lineage.faults import CLASSIC
from bettong.lineage.trace import TraceEvent
from bettong.scenarios.counting import COUNTING

F = TypeVar("F", bound=Fault)

LINK = "driver->receiver"
COMMIT, SERVED = "batch=1/sink.commit", "receiver.commit/batch=1"
OFFSETS, PLAN = "batch=1/offsets", "batch=1/source.plan"


def batch_of(step: str) -> int | None:
    return StepId.parse(step).batch


def batch_of_all(step: str) -> int | None:
    """All messages are of batch 1."""
    id = StepId.parse(step)
    return 1 if id.message else id.batch


def crashed(at: Point, first: list[str], second: list[str]) -> list[TraceEvent]:
    """The driver does some steps, is killed within the last of them, and does others again."""
    events = []
    for step in first:
        events.append(TraceEvent(step, "before", "driver"))
        if step != first[-1]:
            events.append(TraceEvent(step, "after", "driver"))
    crash = Crash("driver", at)
    events.append(
        TraceEvent(f"fault/{crash.id}", "after", "driver", detail={"fault": to_entry(crash)})
    )
    events.append(TraceEvent("node.start/driver", "after", "driver", 2))
    for step in second:
        events += [TraceEvent(step, phase, "driver", 2) for phase in ("before", "after")]
    return events


def learned(equivalence: FaultEquivalence, at: Point, first: list[str], second: list[str]) -> Crash:
    return learn(equivalence, Crash("driver", at), crashed(at, first, second))


def learn(
    equivalence: FaultEquivalence,
    fault: F,
    events: list[TraceEvent],
    batches: Batches = batch_of,
) -> F:
    recovery = recovery_of(fault, read_occurrences(events), batches, {})
    assert recovery is not None
    equivalence.faults[fault.id] = fault
    equivalence.learn(fault.id, recovery)
    return fault


AGAIN = [OFFSETS, "batch=1/p=0/a=0/source.read", COMMIT, "batch=1/commits"]
READ = "batch=1/p=0/a=0/source.read"


def two_alike() -> tuple[FaultEquivalence, Crash, Crash]:
    """Killed before a read and killed before a commit, nothing durable between."""
    equivalence = FaultEquivalence()
    one = learned(equivalence, Point(READ), [PLAN, OFFSETS, READ], AGAIN)
    two = learned(equivalence, Point(COMMIT), [PLAN, OFFSETS, READ, COMMIT], AGAIN)
    return equivalence, one, two


def test_a_second_fault_is_tried_behind_one_of_two_that_are_alike() -> None:
    equivalence, one, two = two_alike()
    assert equivalence.classes() == 1
    behind_two = Omit(LINK, Point(COMMIT, "before", 2))
    equivalence.faults[behind_two.id] = behind_two
    # The commit had not been begun when the first one fired: there its replay is the first time.
    behind_one = Omit(LINK, Point(COMMIT))
    equivalence.faults[behind_one.id] = behind_one
    asked = frozenset({two.id, behind_two.id})
    run = frozenset({one.id, behind_one.id})
    assert equivalence.canonical(asked) == run
    assert equivalence.folded == {asked: run}
    assert equivalence.alike(run) == [asked]
    assert equivalence.alike(asked) == []  # nothing is run in the stead of what is not run
    assert equivalence.alike(frozenset({one.id})) == []


def test_a_set_stands_for_those_only_that_have_faults_of_the_same_kinds() -> None:
    equivalence, one, _ = two_alike()
    events = crashed(Point(COMMIT), [PLAN, OFFSETS, READ, COMMIT], AGAIN)
    recovery = recovery_of(Crash("driver", Point(COMMIT)), read_occurrences(events), batch_of, {})
    assert recovery is not None
    other_kind = OmitReply(LINK, Point(COMMIT))
    behind_one, behind_two = Omit(LINK, Point(COMMIT)), Omit(LINK, Point(COMMIT, "before", 2))
    known = (other_kind, behind_one, behind_two)
    equivalence.faults |= {fault.id: fault for fault in known}
    equivalence.learn(other_kind.id, recovery)
    asked = frozenset({other_kind.id, behind_two.id})
    run = frozenset({one.id, behind_one.id})
    assert equivalence.canonical(asked) == run
    assert asked not in equivalence.alike(run)


def test_a_fault_that_fires_before_the_first_one_is_not_moved() -> None:
    equivalence, _, two = two_alike()
    earlier = OmitReply("driver->gateway", Point(PLAN))
    equivalence.faults[earlier.id] = earlier
    asked = frozenset({two.id, earlier.id})
    assert equivalence.canonical(asked) == asked
    assert not equivalence.folded


def test_a_fault_is_not_moved_to_a_moment_that_no_run_has_shown() -> None:
    equivalence, _, two = two_alike()
    second = Omit(LINK, Point(COMMIT, "before", 2))
    equivalence.faults[second.id] = second
    asked = frozenset({two.id, second.id})
    assert equivalence.canonical(asked) == asked
    assert equivalence.alike(asked) == []


def test_a_fault_is_not_moved_to_a_moment_that_only_another_run_has_shown() -> None:
    equivalence, _, two = two_alike()
    third, second = Omit(LINK, Point(COMMIT, "before", 3)), Omit(LINK, Point(COMMIT, "before", 2))
    equivalence.faults |= {third.id: third, second.id: second}
    asked = frozenset({two.id, third.id})
    assert equivalence.canonical(asked) == asked  # behind the other one the commit comes once


def step(
    name: str, *causes: str, node: str = "driver", link: str | None = None
) -> list[TraceEvent]:
    return [TraceEvent(name, phase, node, 1, causes, link=link) for phase in ("before", "after")]


def ids(same: dict[str, Crash]) -> set[tuple[str, str]]:
    def short(id: str) -> str:
        return id.removeprefix("crash(driver, ").removesuffix(")")

    return {(short(earlier), short(later.id)) for earlier, later in same.items()}


WRITE = "batch=1/p=0/a=0/state.write"


def test_crashes_between_which_a_node_has_only_read_are_the_same() -> None:
    same = same_crashes(read_occurrences([*step(PLAN), *step(OFFSETS), *step(READ), *step(WRITE)]))
    assert ids(same) == {
        (f"before {PLAN}", f"before {OFFSETS}"),
        (f"after {PLAN}", f"before {OFFSETS}"),
        (f"after {OFFSETS}", f"before {WRITE}"),
        (f"before {READ}", f"before {WRITE}"),
        (f"after {READ}", f"before {WRITE}"),
    }


def test_a_crash_that_another_stands_for_is_no_fault_of_its_own() -> None:
    events = [*step(PLAN), *step(OFFSETS)]
    run = lineage_of(events, fold=same_crashes)
    assert f"crash(driver, before {OFFSETS})" in run.lineage.faults
    assert f"crash(driver, before {PLAN})" not in run.lineage.faults
    assert f"crash(driver, before {PLAN})" in run.faults  # it can be tried as a check
    only_first = lineage_of(events, batches=1, fold=same_crashes)
    assert not only_first.lineage.faults


def test_what_stands_for_a_crash_of_the_clean_run_is_told_by_the_clean_run() -> None:
    plan, offsets = Crash("driver", Point(PLAN)), Crash("driver", Point(OFFSETS))
    clean = RunReader(None, CLASSIC).read([*step(PLAN), *step(OFFSETS)], Schedule(), "good")
    assert clean.stand_ins[plan.id] == offsets.id
    assert clean.records is not None
    known = CleanRun(
        clean.lineage, clean.records, frozenset({plan.id, offsets.id}), {plan.id: offsets}
    )
    other = RunReader(None, CLASSIC, known).read(
        [*step(PLAN), *step(READ), *step(WRITE)], Schedule((offsets,)), "good"
    )
    assert other.stand_ins[f"crash(driver, before {READ})"] == f"crash(driver, before {WRITE})"
    assert plan.id not in other.lineage.faults  # although in this run the next one is another


def test_where_not_all_is_seen_that_outlives_a_node_nothing_stands_for_anything() -> None:
    """A component of the user's may write between two steps what the engine's disk knows not of."""
    events = [*step(PLAN), *step(OFFSETS)]
    seen = RunReader(None, CLASSIC, opaque={"driver"}).read(events, Schedule(), "good")
    assert not seen.stand_ins
    assert f"crash(driver, after {PLAN})" in seen.lineage.faults
    elsewhere = RunReader(None, CLASSIC, opaque={"receiver"}).read(events, Schedule(), "good")
    assert elsewhere.stand_ins

    read = RunReader(None, CLASSIC, opaque={"driver"}).read
    recoveries = []
    for place in (Point(PLAN), Point(READ)):
        fault = Schedule((Crash("driver", place),))
        events = crashed(place, [place.step], [PLAN, READ])
        found = read(events, fault, "good").recovery
        assert found is not None
        recoveries.append(found)
    assert recoveries[0].signature != recoveries[1].signature
    assert [found.settled for found in recoveries] == ["", ""]


def test_a_component_of_the_users_is_one_of_which_not_all_is_seen() -> None:
    theirs = replace(COUNTING, classes={"sink": "theirs:Sink", "gateway": "theirs:Gateway"})
    assert opaque(theirs) == {"driver", "gateway"}
    ours = replace(COUNTING, classes={"protocol": "bettong.scenarios.beside:MergingFiles"})
    assert not opaque(ours)


def test_a_read_that_another_node_makes_durable_is_none() -> None:
    released = step("gateway.release/lines/7", READ, node="gateway")
    begins, ends = step(READ)
    same = same_crashes(read_occurrences([begins, *released, ends, *step(WRITE)]))
    assert ids(same) == {(f"after {READ}", f"before {WRITE}")}


def test_a_read_in_which_the_node_has_written_something_is_none() -> None:
    """What a step is called does not say that it leaves nothing on the disk: its calls do."""
    begins, ends = step(READ)
    disk = {"after": f"before {READ}", "more": 0, "calls": [[1, "append", "cache", 9]]}
    within = [begins, replace(ends, detail={"disk": disk}), *step(WRITE)]
    assert ids(same_crashes(read_occurrences(within))) == {(f"after {READ}", f"before {WRITE}")}
    begins, ends = step(WRITE)
    behind = {**disk, "after": f"after {READ}"}
    after = [*step(READ), replace(begins, detail={"disk": behind}), ends]
    assert not same_crashes(read_occurrences(after))


def test_a_crash_is_not_moved_over_what_a_server_was_asked() -> None:
    """It may keep for who has asked what nobody reads any more."""
    asked = step(PLAN, link="driver->gateway")
    same = same_crashes(read_occurrences([*asked, *step(READ), *step(WRITE)]))
    assert ids(same) == {
        (f"after {PLAN}", f"before {WRITE}"),
        (f"before {READ}", f"before {WRITE}"),
        (f"after {READ}", f"before {WRITE}"),
    }


def test_a_crash_is_not_moved_over_what_the_node_heard() -> None:
    reported = step("receiver.open/epoch=1", node="receiver")
    same = same_crashes(
        read_occurrences([*step(PLAN), *reported, *step(OFFSETS, *[reported[0].step])])
    )
    assert not same


def test_a_crash_is_not_moved_within_or_over_a_write() -> None:
    begins, ends = step(WRITE)
    other = READ.replace("p=0", "p=1")
    beside = [begins, *step(READ), *step(other), ends, *step(OFFSETS)]
    assert ids(same_crashes(read_occurrences(beside))) == {(f"after {WRITE}", f"before {OFFSETS}")}


def test_a_crash_is_not_moved_over_a_push() -> None:
    sent = [*step("sender.send/lines/1", link="sender->gateway"), *step("sender.send/lines/2")]
    assert not same_crashes(read_occurrences(sent))


def test_in_a_later_batch_it_counts_only_with_what_that_batch_began() -> None:
    """Killed before the offsets or before the commit: recoveries differ, their ends do not."""
    equivalence = FaultEquivalence()
    next_plan, next_commit = (s.replace("batch=1", "batch=2") for s in (PLAN, COMMIT))
    rest = [READ, COMMIT, "batch=1/commits", next_plan, next_commit]
    early = learned(equivalence, Point(OFFSETS), [PLAN, OFFSETS], [PLAN, OFFSETS, *rest])
    late = learned(equivalence, Point(COMMIT), [PLAN, OFFSETS, READ, COMMIT], rest)
    missing = learned(
        equivalence, Point(READ), [PLAN, OFFSETS, READ], [READ, next_plan, next_commit]
    )
    assert equivalence.classes() == 3
    second = Omit(LINK, Point(next_commit))
    equivalence.faults[second.id] = second
    assert equivalence.canonical(frozenset({late.id, second.id})) == {early.id, second.id}
    assert equivalence.canonical(frozenset({missing.id, second.id})) == {missing.id, second.id}


def test_in_a_later_batch_losses_of_different_links_are_not_alike() -> None:
    """No disk tells what a node that lives on remembers of the connection that it has lost."""
    equivalence = FaultEquivalence()
    next_plan = PLAN.replace("batch=1", "batch=2")
    lost = [Omit("driver->gateway", Point(READ)), Omit(LINK, Point(COMMIT))]
    for fault in lost:
        place = fault.points[0].step
        injected = TraceEvent(
            f"fault/{fault.id}", "after", "driver", detail={"fault": to_entry(fault)}
        )
        tried = [
            TraceEvent(place, "before", "driver"),
            injected,
            TraceEvent(place, "failed", "driver"),
        ]
        events = [*step(PLAN), *(step(READ) if place == COMMIT else ()), *tried]
        rest = [READ, COMMIT] if place == READ else [COMMIT]
        events += [event for name in (*rest, next_plan, WRITE) for event in step(name)]
        learn(equivalence, fault, events)
    second = Crash("driver", Point(next_plan))
    equivalence.faults[second.id] = second
    for fault in lost:
        asked = frozenset({fault.id, second.id})
        assert equivalence.canonical(asked) == asked


def test_in_a_later_batch_what_a_disk_has_refused_is_alike_to_nothing_else() -> None:
    """The rename was not durable, or a file was not removed: the disk has the same, and the node
    that goes on may take the one for begun and not the other."""
    equivalence = FaultEquivalence()
    served, next_served = "receiver.commit/batch=1", "receiver.commit/batch=2"
    for call in (14, 15):
        fault = Storage(Point(served), "EIO", call, "receiver")
        begins, _ = step(served, node="receiver")
        injected = TraceEvent(
            f"fault/{fault.id}", "after", "receiver", detail={"fault": to_entry(fault)}
        )
        events = [*step(PLAN), begins, injected, TraceEvent(served, "failed", "receiver")]
        rest = [served, PLAN.replace("batch=1", "batch=2"), next_served]
        events += [event for name in rest for event in step(name, node="receiver")]
        learn(equivalence, fault, events)
    crash = Crash("receiver", Point(next_served))
    equivalence.faults[crash.id] = crash
    for first in equivalence.faults.keys() - {crash.id}:
        asked = frozenset({first, crash.id})
        assert equivalence.canonical(asked) == asked


def test_what_was_durable_distinguishes_faults() -> None:
    equivalence = FaultEquivalence()
    learned(equivalence, Point(OFFSETS), [PLAN, OFFSETS], AGAIN)
    learned(equivalence, Point(READ), [PLAN, OFFSETS, READ], AGAIN)
    assert equivalence.classes() == 2


def test_what_followed_distinguishes_faults() -> None:
    equivalence = FaultEquivalence()
    learned(equivalence, Point(READ), [PLAN, OFFSETS, READ], AGAIN)
    learned(equivalence, Point(COMMIT), [PLAN, OFFSETS, READ, COMMIT], [*AGAIN, COMMIT])
    assert equivalence.classes() == 2


def test_a_file_that_nothing_names_yet_distinguishes_faults() -> None:
    """What is left of a task is on the disk for good, although no step says that it counts."""
    equivalence = FaultEquivalence()
    before = crashed(Point(WRITE), [PLAN, OFFSETS, WRITE], AGAIN)
    after = crashed(Point(WRITE, "after"), [PLAN, OFFSETS, WRITE], AGAIN)
    written = {"after": f"before {WRITE}", "more": 0, "calls": [[1, "append", "state/one", 9]]}
    after.insert(5, TraceEvent(WRITE, "after", "driver", detail={"disk": written}))
    learn(equivalence, Crash("driver", Point(WRITE)), before)
    learn(equivalence, Crash("driver", Point(WRITE, "after")), after)
    assert equivalence.classes() == 2


def test_what_a_batch_has_had_released_distinguishes_faults() -> None:
    """The driver's crash finds the gateway's messages still there, or not."""
    equivalence = FaultEquivalence()
    release, released = "batch=1/source.commit", "gateway.release/lines/7"
    phases: tuple[PointPhase, ...] = ("before", "after")
    for phase in phases:
        at = Point(release, phase)
        events = crashed(at, [COMMIT, release], [release])
        if phase == "after":
            served = step(released, release, node="gateway")
            events[3:3] = [*served, TraceEvent(release, "after", "driver", 1, (released,))]
        asked = [replace(e, link="driver->gateway") if e.step == release else e for e in events]
        learn(equivalence, Crash("driver", at), asked, batch_of_all)
    assert equivalence.classes() == 2


def test_the_second_fault_stays_at_its_partition() -> None:
    """That the first of several reads is made good says nothing of a later one, by when others
    have been read."""
    equivalence = FaultEquivalence()
    later_read = READ.replace("p=0", "p=1")
    first = learned(equivalence, Point(PLAN), [PLAN], [PLAN, READ, later_read])
    second = Omit("driver->gateway", Point(later_read))
    at_the_first_read = second.moved(Point(READ, "before", 1))
    equivalence.faults |= {fault.id: fault for fault in (second, at_the_first_read)}
    asked = frozenset({first.id, second.id})
    assert equivalence.canonical(asked) == asked


def test_single_faults_at_different_moments_are_not_folded() -> None:
    equivalence, _, two = two_alike()
    assert equivalence.canonical(frozenset({two.id})) == {two.id}
    assert equivalence.canonical(frozenset()) == frozenset()


def test_the_same_moment_of_another_batch_is_alike() -> None:
    equivalence, one, _ = two_alike()
    shifted = [s.replace("batch=1", "batch=0") for s in [PLAN, OFFSETS, READ]]
    at = Point(READ.replace("batch=1", "batch=0"))
    other = learned(equivalence, at, shifted, [s.replace("batch=1", "batch=0") for s in AGAIN])
    assert equivalence.classes() == 1
    second = Omit(LINK, Point(COMMIT.replace("batch=1", "batch=0")))
    equivalence.faults[second.id] = second
    equivalence.faults[Omit(LINK, Point(COMMIT)).id] = Omit(LINK, Point(COMMIT))
    asked = frozenset({other.id, second.id})
    assert equivalence.canonical(asked) == {one.id, Omit(LINK, Point(COMMIT)).id}


def test_a_crash_at_the_moment_of_a_power_cut_of_the_same_node_is_needless() -> None:
    here, later = Point(COMMIT), Point(COMMIT, "after")
    crash, cut = Crash("driver", here), PowerCut("driver", here, 0, "nothing")
    others = [
        Crash("receiver", here),
        Crash("driver", later),
        PowerCut("driver", here, 1, "half"),
        PowerCut("receiver", here, 0, "nothing"),
    ]
    equivalence = FaultEquivalence({fault.id: fault for fault in (crash, cut, *others)})
    assert equivalence.canonical(frozenset({crash.id, cut.id})) == {cut.id}
    for other in others[:2]:
        schedule = frozenset({other.id, cut.id})
        assert equivalence.canonical(schedule) == schedule
    for other in others[2:]:
        schedule = frozenset({crash.id, other.id})
        assert equivalence.canonical(schedule) == schedule


def test_a_fault_that_did_not_fire_teaches_nothing() -> None:
    fault = Crash("driver", Point("batch=9/offsets"))
    assert recovery_of(fault, read_occurrences([]), batch_of, {}) is None
