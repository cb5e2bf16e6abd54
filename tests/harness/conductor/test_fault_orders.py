"""A fault that its process carries out itself has fired when that process was told of it, at the
moment that it names, and has said that it got there."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from bettong.engine.storage.durability import Keep
from bettong.harness.conductor.injector import GO
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.harness.faults.fault import Fault, Go
from bettong.harness.faults.kinds import Crash, Late, Pause, PowerCut, Stall, Storage
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.schedule import Schedule
from bettong.lineage.trace import Phase, TraceEvent


class Nodes:
    """An actuator over nodes that are nothing but names."""

    def __init__(self) -> None:
        self.cuts: list[Keep] = []
        self.paused: list[str] = []
        self.resumed: list[str] = []
        self.restarted: list[str] = []

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        return 1, InjectionOutcome(True, "killed")

    def cut_power(self, node: str, keep: Keep) -> tuple[int, InjectionOutcome]:
        self.cuts.append(keep)
        return 1, InjectionOutcome(True, "cut")

    def restart(self, node: str) -> None:
        self.restarted.append(node)

    def pause(self, node: str) -> InjectionOutcome:
        self.paused.append(node)
        return InjectionOutcome(True, "stopped")

    def resume(self, node: str) -> str:
        self.resumed.append(node)
        return "resumed"

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        return "armed"

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        return "armed"

    def repeat(self, fault: str, link: str) -> str:
        return "armed"

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        return InjectionOutcome(None, "healed")


class Run:
    """A run of the node a with these faults."""

    def __init__(self, *faults: Fault) -> None:
        self.nodes = Nodes()
        self.control = RunControl("r1", self.nodes, Schedule(faults))

    def at(self, step: str, phase: Phase = "before", thread: int = 1) -> Go | None:
        return self.control.notify(thread, TraceEvent(step, phase, "a", 1))

    def take(self, step: str, thread: int = 1) -> None:
        self.at(step, thread=thread)
        self.at(step, "after", thread)

    def call(self, step: str, number: int, what: str = "disk-fault", thread: int = 1) -> None:
        """It says that it got to a call that it was told of."""
        detail = {"call": number, "operation": "append", "path": "f"}
        event = TraceEvent(f"{what}/{step}", "before", "a", 1, detail=detail)
        self.control.notify(thread, event)

    def fired(self, *faults: Fault) -> bool:
        """Whether these have fired, and no others."""
        all_ids = self.control.schedule.ids
        ids = {fault.id for fault in faults}
        assert set(self.control.evidence) | set(self.control.not_fired) == set(all_ids)
        return set(self.control.evidence) == ids


def failing(call: int, occurrence: int = 1, phase: PointPhase = "before") -> Storage:
    return Storage(Point("write", phase, occurrence), "EIO", call)


def test_of_two_calls_in_one_step_the_one_that_is_told_fires() -> None:
    run = Run(failing(2), failing(9))
    assert run.at("write") == Go(errno.EIO, call=2)
    run.call("write", 2)
    run.at("write", "failed")
    assert run.fired(failing(2))


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_call_that_was_not_made_is_not_made_when_the_step_is_taken_again(
    phase: PointPhase,
) -> None:
    run = Run(failing(5, phase=phase), failing(2, 2, phase))
    run.take("write")
    run.at("write")
    if phase == "after":
        run.at("write", "after")
    run.call("write", 2)
    assert run.fired(failing(2, 2, phase))


def test_what_is_ordered_for_a_step_lasts_through_the_steps_within_it() -> None:
    run = Run(failing(2))
    run.at("write")
    run.take("inner")
    run.call("write", 2)
    assert run.fired(failing(2))


def test_what_is_ordered_for_one_thread_no_other_one_fires() -> None:
    run = Run(failing(5), failing(2, 2))
    run.at("write", thread=1)
    run.at("write", thread=2)
    run.call("write", 2, thread=2)
    assert run.fired(failing(2, 2))
    run.call("write", 5, thread=1)
    assert run.fired(failing(5), failing(2, 2))


def test_what_fails_each_time_fails_for_one_process_and_in_one_batch() -> None:
    commit = Storage(Point("batch=1/sink.file=2.commit"), "EIO", lasting=True)
    run = Run(commit)
    fails = Go(errno.EIO)
    assert run.at("batch=1/sink.file=2.commit") == fails
    assert run.at("batch=1/sink.file=3.begin") == GO
    assert run.at("batch=1/sink.file=4.commit") == fails
    assert run.at("batch=2/sink.file=2.commit") == GO
    assert run.control.notify(9, TraceEvent("batch=1/sink.file=2.commit", "before", "a", 2)) == GO
    assert run.fired(commit)


def test_who_never_gives_up_gets_past_what_fails_each_time() -> None:
    rename = Storage(Point("batch=1/sink.file=2.rename"), "EIO", lasting=True)
    run = Run(rename)
    tries = [run.at(f"batch=1/sink.file={number}.rename") for number in range(2, 16)]
    assert tries == [Go(errno.EIO)] * 12 + [GO] * 2
    assert run.fired(rename)


STALL = Stall("a", Point("write"), 2, Point("ask", "before", 3))


MET = replace(STALL, until=Point("ask", "before", 2), meets=True)


@pytest.fixture
def stalled(request: pytest.FixtureRequest) -> Iterator[tuple[Run, threading.Thread]]:
    """A run in which a thread stands still."""
    stall = getattr(request, "param", STALL)
    run = Run(stall)
    assert run.at("write") == Go(hold=2)
    thread = threading.Thread(target=run.call, args=("write", 2, "disk-stall"))
    thread.start()
    while not any(event.step == f"fault/{stall.id}" for event in run.control.events):
        thread.join(0.001)
    yield run, thread
    run.control.close()
    thread.join()


def test_a_thread_that_stalls_goes_on_when_the_step_has_been_taken_once_more(
    stalled: tuple[Run, threading.Thread],
) -> None:
    run, thread = stalled
    run.at("write", thread=2)
    run.at("other", thread=3)
    assert thread.is_alive()
    assert run.fired()
    run.at("write", "after", thread=2)
    thread.join()
    assert run.fired(STALL)


def test_a_thread_that_stalls_goes_on_at_its_moment(stalled: tuple[Run, threading.Thread]) -> None:
    run, thread = stalled
    run.take("ask", thread=2)
    run.at("ask", "failed", thread=2)
    run.take("ask", thread=2)
    assert thread.is_alive()
    run.at("ask", thread=2)
    thread.join()
    assert run.fired(STALL)


def test_a_thread_that_stalls_ends_with_its_process(
    stalled: tuple[Run, threading.Thread],
) -> None:
    run, thread = stalled
    run.control.has_died("a", 1)
    run.control.note(TraceEvent("node.start/a", "after", "a", 2))
    thread.join()


AT_ITS_BEGINNING = Stall("a", Point("write"), 0, Point("write", "before", 2))


def test_a_thread_that_stalls_at_the_beginning_of_a_step_is_ahead_of_who_asks_again() -> None:
    run = Run(AT_ITS_BEGINNING)
    order: list[str] = []

    def take(thread: int) -> None:
        run.at("write", thread=thread)
        order.append(f"{thread} begins")
        run.at("write", "after", thread=thread)

    first = threading.Thread(target=take, args=(1,))
    first.start()
    while not any(event.step == f"fault/{AT_ITS_BEGINNING.id}" for event in run.control.events):
        first.join(0.001)
    run.take("other", thread=3)
    assert not order and run.fired()
    take(2)
    first.join()
    assert order == ["1 begins", "2 begins"]
    assert run.fired(AT_ITS_BEGINNING)


def test_a_thread_that_stalls_at_the_beginning_of_a_step_ends_with_its_process() -> None:
    run = Run(AT_ITS_BEGINNING)
    answers: list[Go | None] = []
    thread = threading.Thread(target=lambda: answers.append(run.at("write")))
    thread.start()
    while not any(event.step == f"fault/{AT_ITS_BEGINNING.id}" for event in run.control.events):
        thread.join(0.001)
    run.control.has_died("a", 1)
    run.control.note(TraceEvent("node.start/a", "after", "a", 2))
    thread.join()
    assert answers == [None]
    run.control.close()


def test_nobody_has_stalled_who_did_not_come_to_the_call() -> None:
    run = Run(STALL)
    run.at("write")
    run.take("write", thread=2)
    run.at("write", "after")
    assert run.fired()


WITHIN = Pause("a", Point("write"), Point("write", "after", 2), replace=True, call=4)


def test_who_stands_still_within_a_step_goes_on_when_its_successor_has_taken_it() -> None:
    run = Run(WITHIN)
    assert run.at("write") == Go(hold=4)
    assert not run.nodes.paused
    comes = threading.Thread(target=run.call, args=("write", 4, "disk-stall"), daemon=True)
    comes.start()
    while not run.nodes.restarted:
        comes.join(0.001)
    assert run.nodes.paused == ["a"]
    for phase in ("before", "after"):
        assert comes.is_alive() and run.fired()
        run.control.notify(2, TraceEvent("write", phase, "a", 2))
    comes.join(60)
    assert not comes.is_alive() and run.nodes.resumed == ["a"]
    assert run.at("write", "after") == GO, "it outlives its successor"
    assert run.fired(WITHIN)
    evidence = run.control.evidence[WITHIN.id]
    assert evidence == "stopped before call 4, append of f; resumed"


def test_nobody_has_stood_still_who_did_not_come_to_the_call() -> None:
    run = Run(WITHIN)
    run.at("write")
    run.call("write", 4, thread=2)  # what others say of their faults is not of this one
    run.take("write", thread=2)
    run.at("write", "after")
    assert run.fired() and not run.nodes.paused and not run.nodes.resumed


def test_another_node_does_not_stand_still_within_that_step() -> None:
    run = Run(Pause("b", Point("write"), call=4))
    assert run.at("write") == GO
    assert run.fired()


def test_what_is_ordered_ends_with_its_process() -> None:
    run = Run(failing(5), failing(2, 2))
    run.at("write")
    run.control.gone(1)
    run.at("write", thread=2)
    run.call("write", 2, thread=2)
    assert run.fired(failing(2, 2))


def test_the_power_is_cut_as_the_fault_says_whose_sync_has_come() -> None:
    first = PowerCut("a", Point("write"), 2, "zeros")
    second = PowerCut("a", Point("write", "before", 2), 1, "half")
    run = Run(first, second)
    run.take("write")
    run.at("write")
    run.call("write", 1, "power-cut")
    assert run.nodes.cuts == ["half"]
    assert run.fired(second)


FULL = Storage(Point("write"), "ENOSPC")
BROKEN = Storage(Point("write"), "EIO")
KILLED = Crash("a", Point("write"), restart=False)


@pytest.mark.parametrize("faults", [(FULL, KILLED), (KILLED, FULL)])
def test_a_process_that_was_killed_at_a_step_does_not_fail_in_it(faults: Sequence[Fault]) -> None:
    run = Run(*faults)
    assert run.at("write") is None
    assert run.fired(KILLED)


def test_a_step_fails_with_one_error() -> None:
    run = Run(FULL, BROKEN)
    assert run.at("write") == Go(errno.ENOSPC)
    assert run.fired(FULL)


def test_a_wait_that_fails_does_not_end_later() -> None:
    wait = Point("batch=1/source.wait")
    late, failed = Late(wait), Storage(wait, "EIO")
    run = Run(failed, late)
    assert run.at(wait.step) == Go(errno.EIO)
    assert run.fired(failed)


def test_who_comes_to_a_step_before_which_a_zombie_goes_on_waits_until_its_own_is_over() -> None:
    """Whose step comes first is not a matter of the clock."""
    pause = Pause("a", Point("write"), Point("write", "before", 2), replace=True)
    run = Run(pause)
    run.at("write")
    successor = TraceEvent("write", "before", "a", 2)
    comes = threading.Thread(target=run.control.notify, args=(2, successor), daemon=True)
    comes.start()
    comes.join(0.2)
    assert comes.is_alive(), "it has gone ahead"
    run.at("write", "after")
    comes.join(60)
    assert not comes.is_alive()
    assert run.fired(pause)


@pytest.mark.parametrize("stalled", [MET], indirect=True)
def test_a_thread_that_is_to_be_met_goes_on_when_who_asks_again_waits_for_it_too(
    stalled: tuple[Run, threading.Thread],
) -> None:
    run, thread = stalled
    run.take("ask", thread=2)
    assert not run.control.wake(drained=False)  # who asks for the first time waits already
    assert run.control.at_work() == {"a"}
    run.at("ask", "failed", thread=2)
    run.take("ask", thread=2)
    assert run.control.at_work() == frozenset()
    assert thread.is_alive()
    assert run.control.wake(drained=False)
    thread.join()
    assert run.fired(MET)


@pytest.mark.parametrize("stalled", [MET], indirect=True)
def test_a_thread_that_is_to_be_met_and_is_not_goes_on_last_and_ends_its_step(
    stalled: tuple[Run, threading.Thread],
) -> None:
    run, thread = stalled
    run.at("write", thread=2)
    run.at("write", "after", thread=2)
    assert thread.is_alive()
    woken = threading.Thread(target=run.control.wake)
    woken.start()
    thread.join()
    assert woken.is_alive()
    run.at("write", "after")
    woken.join()
    assert run.fired(MET)


@pytest.mark.parametrize("stalled", [MET], indirect=True)
def test_a_thread_that_is_to_be_met_has_stood_still_where_nobody_comes_to_an_end(
    stalled: tuple[Run, threading.Thread],
) -> None:
    run, thread = stalled
    run.control.close()
    thread.join()
    assert run.fired(MET)
