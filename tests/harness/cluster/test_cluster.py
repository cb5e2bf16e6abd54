"""What becomes of nodes while others look after them."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.cluster import Cluster
from bettong.harness.cluster.nodes import CommandNode, Node, NodeError
from bettong.harness.conductor.fault_status import Injected
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import Crash, Storage
from bettong.harness.faults.point import Point
from bettong.harness.processes.session import Ended


class InMemory(Node):
    """A node without a process; ``meanwhile`` happens while somebody asks whether it runs."""

    def __init__(self) -> None:
        super().__init__("driver", Instrumentation(), Path("log"))
        self.status: int | None = -1
        self.ends_with = -signal.SIGKILL
        self.meanwhile: Callable[[], object] = lambda: None

    def _start(self, instrumentation: Instrumentation) -> None:
        self.status = None

    def _kill(self) -> Ended | None:
        self.status = -1  # there is no process
        return Ended(1, self.ends_with, 1)

    def _let_go(self) -> None: ...

    def _pause(self) -> str | None:
        return "it stands still"

    def resume(self) -> None: ...

    def poll(self) -> int | None:
        seen, meanwhile = self.status, self.meanwhile
        self.meanwhile = lambda: None
        meanwhile()
        return self.status if seen is None else seen


def started() -> tuple[Cluster, InMemory]:
    node = InMemory()
    cluster = Cluster(None, {})  # type: ignore[arg-type]
    cluster.control = RunControl("r", cluster)
    cluster.nodes["driver"] = node
    cluster.start("driver")
    return cluster, node


def test_a_node_that_ends_by_itself_is_named() -> None:
    cluster, node = started()
    assert cluster.ended() == {}
    node.status = 3
    assert cluster.ended() == {"driver": 3}


def test_a_node_that_is_killed_while_it_is_looked_at_did_not_end_by_itself() -> None:
    cluster, node = started()
    node.meanwhile = lambda: cluster.crash("driver")
    assert cluster.ended() == {}


def test_a_node_that_is_killed_and_started_while_it_is_looked_at_did_not_end_by_itself() -> None:
    cluster, node = started()

    poll = node.poll

    def polled() -> int | None:
        cluster.crash("driver")
        status = poll()
        cluster.restart("driver")
        return status

    node.poll = polled  # type: ignore[method-assign]
    assert cluster.ended() == {}
    node.poll = poll  # type: ignore[method-assign]
    assert cluster.ended() == {}


@pytest.mark.parametrize(
    ("status", "listens", "fired"), [(0, False, True), (0, True, False), (1, False, False)]
)
def test_a_crash_hits_who_has_just_ended_with_its_work_done(
    status: int, listens: bool, fired: bool
) -> None:
    """It is dead at this moment, and is started again; a server that ends has no work done."""
    cluster, node = started()
    node.listens = listens
    node.ends_with = node.status = status
    assert cluster.crash("driver")[1].fired is fired


def test_a_node_that_is_killed_at_its_first_step_did_not_end_by_itself() -> None:
    cluster, node = started()
    cluster.crash("driver")

    def start(instrumentation: Instrumentation) -> None:
        node.status = None
        cluster.crash("driver")  # before whoever starts it goes on

    node._start = start  # type: ignore[method-assign]
    cluster.restart("driver")
    assert node.status == -1
    assert cluster.ended() == {}


def test_a_dead_node_that_is_being_started_did_not_end_by_itself() -> None:
    cluster, node = started()
    cluster.crash("driver")
    seen = []

    def start(instrumentation: Instrumentation) -> None:
        seen.append(cluster.ended())
        node.status = None

    node._start = start  # type: ignore[method-assign]
    cluster.restart("driver")
    assert seen == [{}]
    node.status = 3
    assert cluster.ended() == {"driver": 3}


def test_a_node_that_cannot_be_started_is_not_asked_for() -> None:
    cluster, node = started()
    cluster.crash("driver")

    def start(instrumentation: Instrumentation) -> None:
        raise NodeError("no port is free")

    node._start = start  # type: ignore[method-assign]
    with pytest.raises(NodeError):
        cluster.restart("driver")
    assert cluster.starting == []
    assert cluster.ended() == {}


class Printed:
    """The session of a server that says what it is told to, if anything, or ends when killed."""

    pid = 1

    def __init__(self) -> None:
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.asked = threading.Event()

    def first_line(self, timeout: float) -> bytes:
        self.asked.set()
        return self.lines.get()

    def kill(self) -> Ended:
        self.lines.put(b"")
        return Ended(1, -signal.SIGKILL, 1)

    def poll(self) -> int | None:
        return None


def server(sessions: Sequence[Printed]) -> tuple[Cluster, CommandNode]:
    launched = iter(sessions)
    node = CommandNode(
        "gateway",
        Instrumentation(),
        Path("log"),
        [],
        listen="127.0.0.1:1",
        launch=lambda *_, **__: next(launched),  # type: ignore[arg-type]
    )
    cluster = Cluster(None, {})  # type: ignore[arg-type]
    cluster.control = RunControl("r", cluster)
    cluster.nodes["gateway"] = node
    return cluster, node


def test_a_server_that_is_killed_before_it_listens_is_started_again_by_who_killed_it() -> None:
    killed, up = Printed(), Printed()
    cluster, node = server([killed, up])
    starting = threading.Thread(target=cluster.start, args=("gateway",))
    starting.start()
    assert killed.asked.wait(60)
    assert cluster.crash("gateway")[1].fired
    starting.join()
    up.lines.put(b'{"listening": "127.0.0.1:1"}\n')
    cluster.restart("gateway")
    assert (node.incarnation, cluster.starting) == (2, [])
    assert [e.incarnation for e in cluster.control.events] == [1, 2]


@pytest.mark.parametrize(
    ("failed", "comes_up"),
    [
        (Storage(Point("gateway.start"), "EIO", 1, "gateway"), True),
        (Storage(Point("gateway.append/lines/1"), "EIO", 1, "gateway"), False),
        (Crash("gateway", Point("gateway.start")), False),
    ],
)
def test_a_server_whose_disk_fails_while_it_starts_is_started_again_once(
    monkeypatch: pytest.MonkeyPatch, failed: Fault, comes_up: bool
) -> None:
    sessions = [Printed() for _ in range(3)]
    cluster, node = server(sessions)
    injected = [Injected(failed, "gateway")]
    monkeypatch.setattr(RunControl, "injected", property(lambda control: injected))
    sessions[0].lines.put(b"")
    sessions[1].lines.put(b'{"listening": "127.0.0.1:1"}\n')
    if not comes_up:
        with pytest.raises(NodeError):
            cluster.start("gateway")
        return
    cluster.start("gateway")
    assert node.incarnation == 2
    sessions[2].lines.put(b"")
    with pytest.raises(NodeError):
        cluster.start("gateway")


def test_a_node_that_does_not_run_cannot_be_made_to_stand_still() -> None:
    cluster, node = started()
    node.status = 0
    assert not cluster.pause("driver").fired
    assert cluster.paused == frozenset()


def test_a_node_whose_first_step_comes_before_it_counts_as_started_stands_still() -> None:
    cluster, node = started()
    cluster.crash("driver")
    outcomes = []

    def start(instrumentation: Instrumentation) -> None:
        pausing.start()
        pausing.join(0.1)  # as long as it might take to be told that nothing runs
        node.status = None

    node._start = start  # type: ignore[method-assign]
    pausing = threading.Thread(target=lambda: outcomes.append(cluster.pause("driver")))
    cluster.restart("driver")
    pausing.join()
    assert [outcome.fired for outcome in outcomes] == [True]


def test_a_start_that_comes_to_its_end_while_one_looks_is_no_end() -> None:
    """Until it has, the node tells how the incarnation before it has ended."""
    cluster, node = started()
    begun, go_on = threading.Event(), threading.Event()
    start = node._start

    def slow(instrumentation: Instrumentation) -> None:
        begun.set()
        go_on.wait()
        start(instrumentation)

    cluster.crash("driver")
    node._start = slow  # type: ignore[method-assign]
    other = threading.Thread(target=cluster.start, args=("driver",))
    other.start()
    begun.wait()

    def finish() -> None:
        go_on.set()
        other.join()

    node.meanwhile = finish
    assert cluster.ended() == {}
    finish()
    assert (cluster.starting, cluster.ended()) == ([], {})
