"""The conductor with small instrumented processes, which are really killed and really stopped."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bettong.engine import steps
from bettong.engine.steps import ConductorRecorder, Instrumentation, RunOverError, Step
from bettong.engine.storage.disk_log import account, lose
from bettong.engine.storage.durability import Keep
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.server import Conductor
from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.harness.faults.kinds import (
    Crash,
    CrashWriting,
    Cut,
    Delay,
    Omit,
    Pause,
    PowerCut,
    Storage,
)
from bettong.harness.faults.point import Point, PointPhase
from bettong.harness.faults.schedule import Schedule
from bettong.harness.processes.session import ProcessSession
from bettong.lineage.trace import TraceEvent, read_trace

CHILD = """
import sys, time
from bettong.engine import steps
from bettong.engine.steps import Instrumentation, step
steps.install(Instrumentation.from_env())
for name in sys.argv[1:]:
    with step(name):
        pass
with step("done"):
    pass
time.sleep(600)
"""


class Children:
    """An actuator over children that take the steps they are given."""

    def __init__(self, conductor: Conductor, folder: Path) -> None:
        self.conductor = conductor
        self.folder = folder
        self.sessions: dict[str, ProcessSession] = {}
        self.incarnation: dict[str, int] = {}
        self.names: dict[str, tuple[str, ...]] = {}
        self.calls: list[str] = []
        self.zombies: list[ProcessSession] = []
        self.fired: bool | None = None
        self.control: RunControl | None = None
        self.before_restart: Callable[[], None] = lambda: None
        self.program = CHILD

    def start(self, node: str, *names: str) -> None:
        self.names[node] = names
        self.incarnation[node] = self.incarnation.get(node, 0) + 1
        instr = Instrumentation(
            "r1", node, self.incarnation[node], self.conductor.address, disk=str(self.folder)
        )
        self.sessions[node] = ProcessSession.start(
            [sys.executable, "-c", self.program, *names],
            env={**os.environ, **instr.to_env()},
            log=self.folder / "log",
        )

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        ended = self.sessions[node].kill()
        return self.incarnation[node], InjectionOutcome(ended.status == -9, str(ended))

    def cut_power(self, node: str, keep: Keep) -> tuple[int, InjectionOutcome]:
        incarnation, outcome = self.crash(node)
        lost = lose(account(self.folder, node), keep)
        return incarnation, InjectionOutcome(outcome.fired, f"lost {lost}")

    def restart(self, node: str) -> None:
        self.before_restart()
        if self.sessions[node].poll() is None:
            self.zombies.append(self.sessions[node])
        self.start(node, *self.names[node])

    def pause(self, node: str) -> InjectionOutcome:
        return InjectionOutcome(True, self.sessions[node].pause())

    def resume(self, node: str) -> str:
        for session in self.zombies or [self.sessions[node]]:
            session.resume()
        return "resumed"

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        self.calls.append(f"arm {fault}")
        return "armed"

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        self.calls.append(f"arm {fault}")
        return "armed"

    def repeat(self, fault: str, link: str) -> str:
        self.calls.append(f"arm {fault}")
        return "armed"

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        self.calls.append(f"heal {fault}")
        return InjectionOutcome(self.fired, "healed")


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    with Conductor() as conductor:
        found = Children(conductor, tmp_path)
        yield found
        for session in (*found.sessions.values(), *found.zombies):
            session.kill()


Begin = Callable[..., RunControl]


@pytest.fixture
def begin(children: Children, tmp_path: Path) -> Begin:
    def begin(*faults: object) -> RunControl:
        control = RunControl(
            "r1",
            children,
            Schedule(tuple(faults)),
            tmp_path / "trace",  # type: ignore[arg-type]
        )
        children.conductor.begin(control)
        return control

    return begin


def steps_of(control: RunControl, node: str) -> list[tuple[str, str, int]]:
    return [(e.step, e.phase, e.incarnation) for e in control.events if e.node == node]


def until(control: RunControl, reached: Callable[[], bool], seconds: float = 60) -> bool:
    """Look until something is so, or so long; whether it is."""
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        control.wait(0.05)
    return reached()


def begun(control: RunControl, step: str, times: int = 1) -> bool:
    return until(control, lambda: control.occurrences(step) >= times)


class Taker:
    """Takes steps from this process, as one thread of a node."""

    def __init__(self, children: Children, node: str, run: str = "r1", incarnation: int = 1):
        self._recorder = ConductorRecorder(children.conductor.address, run)
        self._node, self._incarnation = node, incarnation

    def step(self, name: str, link: str | None = None) -> Step:
        event = TraceEvent(name, "before", self._node, self._incarnation, link=link)
        return Step(self._recorder, event)


def test_a_crash_fires_exactly_before_its_step_and_the_node_comes_back(
    children: Children, begin: Begin, tmp_path: Path
) -> None:
    control = begin(Crash("a", Point("two", "before")))
    children.start("a", "one", "two", "three")
    first = children.sessions["a"].pid
    assert begun(control, "done")
    assert [s for s in steps_of(control, "a") if s[2] == 1 and "/" not in s[0]] == [
        ("one", "before", 1),
        ("one", "after", 1),
        ("two", "before", 1),
    ]
    assert ("three", "after", 2) in steps_of(control, "a")
    assert not control.not_fired
    assert control.evidence["crash(a, before two)"].startswith(f"pid {first} ended with status -9")
    assert not psutil.pid_exists(first)
    children.conductor.end(control)
    assert list(read_trace(tmp_path / "trace")) == control.events


def test_a_crash_after_a_step_and_a_second_one_at_its_second_occurrence(
    children: Children, begin: Begin
) -> None:
    control = begin(Crash("a", Point("one", "after")), Crash("a", Point("one", "after", 2), False))
    children.start("a", "one", "two")
    assert until(control, lambda: not control.not_fired)
    assert children.sessions["a"].poll() == -9
    assert control.occurrences("one") == 2
    assert control.occurrences("two") == 0


def test_two_nodes_are_killed_at_once_by_a_step_of_one(children: Children, begin: Begin) -> None:
    control = begin(Crash("b", Point("one")), Crash("a", Point("one")))
    children.start("b")
    assert begun(control, "done")
    children.start("a", "one")
    assert begun(control, "done", 3)
    assert not control.not_fired
    assert children.incarnation == {"a": 2, "b": 2}


def test_nobody_asks_a_node_in_vain_until_it_is_back(children: Children, begin: Begin) -> None:
    control = begin(Crash("b", Point("one")))
    children.start("b")
    assert begun(control, "done")
    asker = threading.Thread(target=lambda: Taker(children, "a").step("ask", "a->b").__enter__())
    asked: list[bool] = []

    def look() -> None:
        asker.start()
        asked.append(until(control, lambda: control.occurrences("ask") > 0, 1))

    children.before_restart = look
    with Taker(children, "a").step("one"):
        pass
    assert begun(control, "ask")
    assert asked == [False]
    with Taker(children, "a").step("elsewhere", "a->c"):
        pass
    asker.join()


def test_nothing_is_put_in_force_for_a_process_that_was_killed_meanwhile(
    children: Children, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits at a step, while another thread's step has its node killed."""
    lost = Omit("b->c", Point("two"))
    control = begin(Crash("b", Point("one"), restart=False), lost)
    children.start("b")
    assert begun(control, "done")
    refused: list[bool] = []

    def ask() -> None:
        with pytest.raises(RunOverError):
            Taker(children, "b").step("two", "b->c").__enter__()
        refused.append(True)

    asker = threading.Thread(target=ask)
    kill = children.crash

    def crash(node: str) -> tuple[int, InjectionOutcome]:
        asker.start()
        assert begun(control, "two")
        return kill(node)

    monkeypatch.setattr(children, "crash", crash)
    with pytest.raises(RunOverError):
        Taker(children, "b").step("one").__enter__()
    asker.join()
    assert (refused, control.not_fired) == ([True], (lost.id,))
    assert not children.calls


def test_who_has_not_reached_a_node_that_was_down_is_told_when_it_is_back(
    children: Children, begin: Begin
) -> None:
    control = begin(Crash("b", Point("one")))
    children.start("b")
    assert begun(control, "done")
    told: list[bool] = []
    asker = threading.Thread(target=lambda: told.append(steps.peer_is_back("a->b")))
    waited: list[bool] = []

    def look() -> None:
        asker.start()
        asker.join(0.5)
        waited.append(asker.is_alive())

    children.before_restart = look
    steps.install(Instrumentation("r1", "a", 1, children.conductor.address))
    try:
        assert not steps.peer_is_back("a->b")  # it was not down
        with steps.step("one"):
            pass
        assert begun(control, "done", 2)
        asker.join()
        assert (waited, told) == ([True], [True])
        assert steps.peer_is_back("a->b")
        with steps.step("ask", link="a->b"):
            pass
        assert not steps.peer_is_back("a->b")  # it was asked since, and is not down
    finally:
        steps.install(Instrumentation())
    assert not any(event.step.startswith(steps.UNREACHED) for event in control.events)


def test_a_node_is_at_work_while_it_is_within_a_step_and_asks_nobody(
    children: Children, begin: Begin
) -> None:
    control = begin()
    writer, asker = Taker(children, "writer"), Taker(children, "asker")
    with writer.step("write"), asker.step("task"):
        assert control.at_work() == {"writer", "asker"}
        with Taker(children, "asker").step("ask", "asker->writer"):
            assert control.at_work() == {"writer"}
    assert not control.at_work()


def test_a_step_that_never_comes_is_a_fault_that_did_not_fire(
    children: Children, begin: Begin
) -> None:
    control = begin(Crash("a", Point("one", "before", 2)))
    children.start("a", "one")
    assert begun(control, "done")
    assert control.not_fired == ("crash(a, before one#2)",)
    assert control.evidence == {}


def test_a_paused_node_stands_still_until_it_is_resumed(children: Children, begin: Begin) -> None:
    control = begin(Pause("a", Point("one", "after"), Point("release")))
    children.start("a", "one", "two")
    assert begun(control, "one") and until(control, lambda: len(control.events) >= 3)
    assert psutil.Process(children.sessions["a"].pid).status() == "stopped"
    assert control.occurrences("two") == 0
    with Taker(children, "b").step("release"):
        pass
    assert begun(control, "done")
    assert not control.not_fired


def test_a_node_that_is_replaced_while_it_stands_still_goes_on_as_a_zombie(
    children: Children, begin: Begin
) -> None:
    control = begin(Pause("a", Point("one"), Point("two", "after"), replace=True))
    children.start("a", "one", "two")
    assert begun(control, "done", 2)
    assert not control.not_fired
    taken = [(e.step, e.incarnation) for e in control.events if e.phase == "after"]
    assert taken.index(("two", 2)) < taken.index(("one", 1))
    assert {("one", 2), ("two", 1)} <= set(taken)


def test_who_is_replaced_for_good_goes_on_when_it_is_woken_and_outlives_its_successor(
    children: Children, begin: Begin
) -> None:
    pause = Pause("a", Point("one"), replace=True)
    control = begin(pause, Crash("a", Point("two", "after"), restart=False))
    children.start("a", "one", "two")
    children.control = control
    assert until(control, lambda: control.occurrences("two") == 1)
    assert until(control, lambda: control.not_fired == (pause.id,))
    assert control.wake()
    assert not control.wake()
    assert begun(control, "done")
    taken = [(e.step, e.incarnation) for e in control.events if e.phase == "after"]
    assert taken.index(("two", 2)) < taken.index(("one", 1))
    assert not control.not_fired


def replaced_until_what_never_comes(children: Children, begin: Begin) -> tuple[Pause, RunControl]:
    """One that stands still, and whose successor has done its work."""
    pause = Pause("a", Point("one"), Point("three"), replace=True)
    control = begin(pause)
    children.start("a", "one", "two")
    children.control = control
    assert begun(control, "done")
    return pause, control


@pytest.mark.parametrize("done", [True, False])
def test_who_stands_still_until_what_never_comes_goes_on_when_that_is_seen(
    children: Children, begin: Begin, done: bool
) -> None:
    pause, control = replaced_until_what_never_comes(children, begin)
    control.end_unended("its successor had ended the work", done)
    assert begun(control, "done", 2)
    assert control.not_fired == (() if done else (pause.id,))
    assert control.unended == ()


def test_who_is_replaced_goes_on_at_the_latest_when_all_others_have_done_their_work(
    children: Children, begin: Begin
) -> None:
    pause, control = replaced_until_what_never_comes(children, begin)
    assert not control.wake(drained=False)
    assert control.unended == (pause.id,)
    assert control.wake()
    assert begun(control, "done", 2)
    assert "had done their work before its moment came" in control.evidence[pause.id]


def test_another_run_and_a_dead_incarnation_are_refused(children: Children, begin: Begin) -> None:
    control = begin(Crash("a", Point("one"), restart=False))
    with (
        pytest.raises(RunOverError, match="run 'r0' is over"),
        Taker(children, "a", "r0").step("x"),
    ):
        pass
    children.start("a", "one")
    assert until(control, lambda: not control.not_fired)
    with pytest.raises(RunOverError, match="dead"), Taker(children, "a").step("late"):
        pass
    with Taker(children, "a", incarnation=2).step("fresh"):
        pass
    children.conductor.end(control)
    with pytest.raises(RunOverError, match="over"), Taker(children, "b").step("x"):
        pass
    assert "late" not in {e.step for e in control.events}


TORN = """
import sys
from pathlib import Path
from bettong.engine import steps
from bettong.engine.steps import Instrumentation, step
from bettong.engine.storage.disk import OS_DISK
steps.install(Instrumentation.from_env())
folder = Path(sys.argv[1])
with step("write"):
    file = OS_DISK.append_to(folder / "new")
    for data in (b"first", b"second"):
        file.write(data)
        file.sync()
    OS_DISK.rename(folder / "new", folder / "named")
    OS_DISK.sync_directory(folder)
"""


@pytest.mark.parametrize(
    ("sync", "name", "content"),
    [
        (1, "new", b"fi"),
        (2, "new", b"firstsec"),
        (3, "new", b"firstsecond"),
        (4, "named", b"firstsecond"),
    ],
)
def test_the_power_is_cut_right_before_something_becomes_durable(
    children: Children, begin: Begin, tmp_path: Path, sync: int, name: str, content: bytes
) -> None:
    fault = PowerCut("a", Point("write"), sync)
    end = Crash("a", Point("write", "after"), restart=False)
    control = begin(fault, end)
    folder = tmp_path / "disk"
    folder.mkdir()
    children.program = TORN
    children.before_restart = lambda: children.names.update(a=(str(tmp_path / "elsewhere"),))
    children.start("a", str(folder))
    fired = sync < 4
    assert until(control, lambda: (fault if fired else end).id in control.evidence)
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [(name, content)]
    assert (fault.id in control.evidence) == fired
    ended = [e.detail["disk"] for e in control.events if (e.step, e.phase) == ("write", "after")]
    assert fired or [sum("sync" in c[1] for c in disk["calls"]) for disk in ended][:1] == [3]


@pytest.mark.parametrize(
    ("sync", "left", "durable"),
    [
        (1, {"new": b"first"}, {}),
        (2, {"new": b"firstsecond"}, {}),
        (3, {"named": b"firstsecond"}, {}),
    ],
)
def test_what_a_node_was_killed_writing_is_there_and_not_durable(
    children: Children,
    begin: Begin,
    tmp_path: Path,
    sync: int,
    left: dict[str, bytes],
    durable: dict[str, bytes],
) -> None:
    fault = CrashWriting("a", Point("write"), sync)
    control = begin(fault)
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    children.program = TORN
    children.before_restart = lambda: children.names.update(a=(str(tmp_path / "elsewhere"),))
    children.start("a", str(folder))
    assert begun(control, "write", 2) and fault.id in control.evidence

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert files() == left
    assert children.sessions["a"].wait(60) == 0
    lose(account(children.folder, "a"), "nothing")
    assert files() == durable


TORN_LATER = TORN.replace('with step("write"):', 'with step("write"):\n    pass\nif folder:')
"""The same after the step, before the thread's next one."""


@pytest.mark.parametrize(
    ("kind", "sync", "left"),
    [
        (CrashWriting, 1, {"new": b"first"}),
        (CrashWriting, 3, {"named": b"firstsecond"}),
        (PowerCut, 1, {"new": b"fi"}),
        (PowerCut, 3, {"new": b"firstsecond"}),
    ],
)
def test_a_node_dies_amid_what_it_writes_between_two_steps(
    children: Children,
    begin: Begin,
    tmp_path: Path,
    kind: type[CrashWriting | PowerCut],
    sync: int,
    left: dict[str, bytes],
) -> None:
    fault = kind("a", Point("write", "after"), sync)
    control = begin(fault)
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    children.program = TORN_LATER
    children.before_restart = lambda: children.names.update(a=(str(tmp_path / "elsewhere"),))
    children.start("a", str(folder))
    assert begun(control, "write", 2) and fault.id in control.evidence
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == left


WRITES = """
import json, sys
from pathlib import Path
from bettong.engine import steps
from bettong.engine.steps import Instrumentation, step
from bettong.engine.storage.disk import OS_DISK
steps.install(Instrumentation.from_env())
path = Path(sys.argv[1])
path.parent.mkdir(exist_ok=True)
seen = []
def take(call):
    try:
        call()
        seen.append("")
    except OSError as e:
        seen.append(e.strerror)
with step("write"):
    file = OS_DISK.append_to(path)
    take(lambda: file.write(b"first"))
    take(file.sync)
take(lambda: file.write(b"second"))
with step("reported", seen=seen, content=path.read_text()):
    pass
"""


@pytest.mark.parametrize(
    ("errno", "call", "phase", "how", "seen", "content"),
    [
        ("ENOSPC", 2, "before", "", ["No space left on device", "", ""], "firsecond"),
        ("EIO", 2, "before", "", ["Input/output error", "", ""], "second"),
        ("EIO", 3, "before", "", ["", "Input/output error", ""], "firstsecond"),
        ("SHORT", 2, "before", "", ["", "", ""], "firstsecond"),
        ("EIO", 1, "after", "", ["", "", "Input/output error"], "first"),
        ("EIO", 4, "before", "", ["", "", ""], "firstsecond"),
        ("SHORT", 3, "before", "", ["", "", ""], "firstsecond"),
        ("EIO", 2, "before", "lasting", ["Input/output error"] * 2 + [""], "second"),
        ("EIO", 2, "before", "done", ["Input/output error", "", ""], "firstsecond"),
        ("ENOSPC", 2, "before", "done", ["No space left on device", "", ""], "firstsecond"),
        ("EIO", 1, "after", "done", ["", "", "Input/output error"], "firstsecond"),
        ("EIO", 1, "before", "done", ["", "", ""], "firstsecond"),
    ],
)
def test_the_nth_call_to_the_disk_fails(
    children: Children,
    begin: Begin,
    tmp_path: Path,
    errno: str,
    call: int,
    phase: PointPhase,
    how: str,
    seen: list[str],
    content: str,
) -> None:
    fault = Storage(Point("write", phase), errno, call, "a", how == "lasting", done=how == "done")
    control = begin(fault)
    children.program = WRITES
    children.start("a", str(tmp_path / "disk" / "file"))
    assert until(control, lambda: control.occurrences("reported") == 1)
    reported = next(e.detail for e in control.events if e.step == "reported")
    assert reported["seen"] == seen
    assert reported["content"] == content
    never = (
        call == 4  # no such call
        or (errno == "SHORT" and call == 3)  # no write
        or (how == "done" and (call, phase) == (1, "before"))  # nobody could close the file
    )
    assert (fault.id in control.not_fired) == never


LEAVES = """
import sys
from pathlib import Path
from bettong.engine import steps
from bettong.engine.steps import Instrumentation, step
from bettong.engine.storage.disk import OS_DISK
steps.install(Instrumentation.from_env())
folder = Path(sys.argv[1])
with step("write"):
    file = OS_DISK.append_to(folder / "named")
    OS_DISK.sync_directory(folder)
    file.write(b"first")
    file.sync()
    file.write(b"second")
with step("link"):
    OS_DISK.link(folder / "named", folder / "other")
with step("end"):
    pass
"""


@pytest.mark.parametrize(
    ("at", "keep", "left"),
    [
        (Point("write", "after"), "nothing", {"named": b"first"}),
        (Point("write", "after"), "half", {"named": b"firstsec"}),
        (Point("write", "after"), "zeros", {"named": b"first\0\0\0\0\0\0"}),
        (Point("end"), "names", {"named": b"first", "other": b"first"}),
        (Point("end"), "content", {"named": b"firstsecond"}),
        (Point("end"), 1, {"named": b"firstsecond"}),
        (Point("end", "after"), "nothing", {"named": b"first"}),
    ],
)
def test_the_power_is_cut_at_the_edge_of_a_step(
    children: Children, begin: Begin, tmp_path: Path, at: Point, keep: Keep, left: dict[str, bytes]
) -> None:
    fault = PowerCut("a", at, 0, keep)
    control = begin(fault)
    folder = tmp_path / "disk"
    folder.mkdir()
    children.program = LEAVES
    children.before_restart = lambda: children.names.update(a=(str(tmp_path / "elsewhere"),))
    children.start("a", str(folder))
    assert until(control, lambda: not control.not_fired)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == left
    assert "lost" in control.evidence[fault.id]


@pytest.mark.parametrize("cut_first", [False, True])
def test_a_node_that_two_faults_kill_at_one_moment_comes_back_once(
    children: Children, begin: Begin, cut_first: bool
) -> None:
    crash, cut = Crash("a", Point("s2")), PowerCut("a", Point("s2"), 0, "nothing")
    control = begin(cut, crash) if cut_first else begin(crash, cut)
    children.start("a", "s1", "s2")
    assert begun(control, "s2", 2) and begun(control, "done")
    assert control.not_fired == ()
    assert children.incarnation == {"a": 2}


def test_a_storage_fault_fails_the_step_as_the_system_would(
    children: Children, begin: Begin
) -> None:
    control = begin(Storage(Point("write"), "ENOSPC"))
    with pytest.raises(OSError) as caught, Taker(children, "a").step("write"):
        pass
    assert caught.value.errno == errno.ENOSPC
    with Taker(children, "a").step("write"):
        pass
    assert not control.not_fired


def test_an_omission_is_armed_before_the_answer_and_healed_when_the_step_failed(
    children: Children, begin: Begin
) -> None:
    fault = Omit("a->b", Point("send"))
    control = begin(fault)
    connection_id = Taker(children, "a")
    with pytest.raises(ConnectionError), connection_id.step("send", "a->b"):
        assert children.calls == [f"arm {fault.id}"]
        raise ConnectionError("lost")
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert "ConnectionError: lost" in control.evidence[fault.id]


@pytest.mark.parametrize("fired", [True, False, None])
def test_an_omission_that_no_step_noticed_needs_the_proxy_s_word(
    children: Children, begin: Begin, fired: bool | None
) -> None:
    fault = Omit("b->a", Point("ack"))
    control = begin(fault)
    children.fired = fired
    with Taker(children, "b").step("ack", "b->a"):
        pass
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert control.not_fired == (() if fired else (fault.id,))


def test_a_fault_on_a_link_fires_one_step_and_holds_the_others(
    children: Children, begin: Begin
) -> None:
    begin(Delay("a->b", Point("slow"), 5))
    order: list[str] = []
    entered, other_began = threading.Event(), threading.Event()

    def other() -> None:
        other_began.set()
        with Taker(children, "a").step("quick", "a->b"):
            order.append("quick")

    with Taker(children, "a").step("slow", "a->b"):
        entered.set()
        thread = threading.Thread(target=other)
        thread.start()
        other_began.wait(60)
        order.append("slow")
    thread.join(60)
    assert order == ["slow", "quick"]


def test_a_fault_on_a_link_waits_for_the_steps_that_are_under_way(
    children: Children, begin: Begin
) -> None:
    begin(Delay("a->b", Point("slow"), 5))
    order: list[str] = []

    def slow() -> None:
        with Taker(children, "a").step("slow", "a->b"):
            order.append("slow")

    with Taker(children, "a").step("quick", "a->b"):
        thread = threading.Thread(target=slow)
        thread.start()
        order.append("quick")
    thread.join(60)
    assert order == ["quick", "slow"]


def test_a_cut_lasts_from_one_step_until_another(children: Children, begin: Begin) -> None:
    fault = Cut(("a",), ("b",), Point("one"), Point("two", "after"))
    control = begin(fault)
    connection_id = Taker(children, "a")
    with connection_id.step("one"):
        assert children.calls == [f"arm {fault.id}"]
    with connection_id.step("two"):
        assert len(children.calls) == 1
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert not control.not_fired


def test_a_cut_whose_end_never_comes_did_not_fire_and_is_healed_all_the_same(
    children: Children, begin: Begin
) -> None:
    fault = Cut(("a",), ("b",), Point("one"), Point("two"))
    control = begin(fault)
    with Taker(children, "a").step("one"):
        pass
    children.conductor.end(control)
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert control.not_fired == (fault.id,)


def test_a_cut_for_two_tries_heals_before_the_third_request_that_meets_it(
    children: Children, begin: Begin
) -> None:
    fault = Cut(("a",), ("b",), Point("ask"), tries=2)
    control = begin(fault)
    connection_id = Taker(children, "a")
    for _ in range(2):
        with connection_id.step("elsewhere", "a->c"), connection_id.step("ask", "a->b"):
            assert children.calls == [f"arm {fault.id}"]
    with connection_id.step("ask", "a->b"):
        assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert "2 requests met it" in control.evidence[fault.id]


def test_a_cut_for_all_tries_heals_when_the_only_one_is_over(
    children: Children, begin: Begin
) -> None:
    fault = Cut(("a",), ("b",), Point("ask"), tries="all")
    control = begin(fault)
    with Taker(children, "a").step("ask", "a->b"), Taker(children, "a").step("aside", "a->b"):
        assert children.calls == [f"arm {fault.id}"]
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert not control.not_fired


def test_a_cut_for_all_tries_has_not_fired_where_its_step_asks_nobody(
    children: Children, begin: Begin
) -> None:
    fault = Cut(("a",), ("b",), Point("write"), tries="all")
    control = begin(fault)
    with Taker(children, "a").step("write"):
        pass
    assert children.calls == [f"arm {fault.id}", f"heal {fault.id}"]
    assert control.not_fired == (fault.id,)


@pytest.mark.parametrize("links", [(), ("a->b",)], ids=["met by none", "met by one"])
def test_a_cut_for_some_tries_has_fired_when_a_request_has_met_it(
    children: Children, begin: Begin, links: tuple[str, ...]
) -> None:
    fault = Cut(("a",), ("b",), Point("one"), tries=2)
    control = begin(fault)
    for step, link in (("one", None), *(("ask", link) for link in links)):
        with Taker(children, "a").step(step, link):
            pass
    children.conductor.end(control)
    assert control.not_fired == (() if links else (fault.id,))


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"[1]\n", b'{"run":"r1","event":[]}\n', b"\xff\n"]
)
def test_what_is_not_a_step_is_refused(children: Children, begin: Begin, line: bytes) -> None:
    begin()
    recorder = ConductorRecorder(children.conductor.address, "r1")
    assert b'"go": false' in recorder._exchange(line)


def test_nothing_is_recorded_when_nothing_is_installed() -> None:
    with steps.step("x") as s:
        s.note(a=1)
    assert type(s).__name__ == "_NullStep"


def test_who_waits_is_woken_when_a_process_has_left_and_not_by_its_steps(
    children: Children, begin: Begin
) -> None:
    control = begin()
    taken, leave = threading.Event(), threading.Event()
    woken: list[bool] = []

    def take() -> None:
        taker = Taker(children, "a")  # its connection is this thread's, and closes with it
        for name in ("one", "two", "three"):
            with taker.step(name):
                pass
        taken.set()
        leave.wait(60)

    def wait() -> None:
        control.wait(600)  # longer than it is waited for here
        woken.append(leave.is_set())

    threads = [threading.Thread(target=of, daemon=True) for of in (wait, take)]
    for thread in threads:
        thread.start()
    assert taken.wait(60)
    leave.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True]
    assert len(control.events) == 6


@pytest.mark.parametrize("error", [RuntimeError, OSError, ValueError, KeyError, TypeError])
def test_a_step_that_the_harness_itself_cannot_answer_ends_the_run(
    children: Children, error: type[Exception]
) -> None:
    """The process that asked would look as if it had died of a fault."""

    def broken(event: TraceEvent) -> None:
        raise error(f"cannot take {event.step}")

    control = RunControl("r1", children, on_step=broken)
    children.conductor.begin(control)
    children.start("a", "one")
    assert until(control, lambda: control.failure is not None)
    assert control.failure.args == ("cannot take one",)


def test_a_step_may_tell_of_many_calls_to_the_disk(children: Children, begin: Begin) -> None:
    control = begin()
    recorder = ConductorRecorder(children.conductor.address, "r1")
    calls = [[number, "rename", "/" + "a" * 400, "/" + "b" * 400, 0] for number in range(4000)]
    recorder.notify(TraceEvent("one", "before", "a", 1, detail={"disk": {"calls": calls}}))
    recorder.notify(TraceEvent("one", "after", "a", 1))
    assert [event.phase for event in control.events] == ["before", "after"]
