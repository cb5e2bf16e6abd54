"""The injector of a run, without Spark: what each fault asks of it, and when it has fired."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bettong.harness.faults.actuator import InjectionOutcome
from bettong.harness.queries.faults.kinds import parse_fault, refused_once
from bettong.harness.queries.run import injector as injector_module
from bettong.harness.queries.run.clients import LONG_S, PATIENCE_S, STANDS_STILL, Clients
from bettong.harness.queries.run.injector import FaultInjector
from bettong.harness.wire.armed import WireEvidence
from bettong.lineage.trace import TraceEvent

MIDDLE = "batch=1/p=0/a=0/source.middle"


@dataclass
class Armed:
    """What was put in force."""

    what: tuple[Any, ...]
    action: Callable[[], object] | None = None
    fired: int = 0
    healed: bool = False

    def evidence(self) -> WireEvidence:
        return WireEvidence(bool(self.fired), self.fired, "the request", "")

    def heal(self) -> WireEvidence:
        self.healed = True
        return self.evidence()


@dataclass
class Proxies:
    """Proxies, recorder and server in one."""

    armed: list[Armed] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    waiting: frozenset[int] = frozenset()
    ours: bool = True
    made: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def recorder(self) -> Proxies:
        return self

    @property
    def servers(self) -> dict[str, Proxies]:
        return {"db": self} if self.ours else {}

    def arm(
        self,
        point: Any,
        lasts: str,
        action: Callable[[], object] | None,
        *,
        close: bool,
        answer: bytes,
    ) -> Armed:
        told = (answer.split(b"\r\n")[0].decode(),) if answer else ()
        self.armed.append(Armed((point.kind, point.match, lasts, close, *told), action))
        return self.armed[-1]

    def refuse_once(self, endpoint: str) -> Armed:
        self.armed.append(Armed(("refuse", endpoint)))
        return self.armed[-1]

    def server(self, endpoint: str) -> Proxies:
        return self

    def restart(self) -> None:
        self.done.append("restart")

    def pause(self) -> None:
        self.done.append("pause")

    def resume(self) -> None:
        self.done.append("resume")

    def clock(self) -> int:
        return 7

    def contacts(self) -> list[tuple[int, int | None]]:
        return list(self.made)

    def unanswered(self, since: int) -> frozenset[int]:
        assert since == 7
        return self.waiting


@dataclass
class Driver:
    """Notes what is done to it."""

    done: list[str]

    def pause(self, node: str) -> InjectionOutcome:
        self.done.append("driver stops")
        return InjectionOutcome(True, "stopped")

    def resume(self, node: str) -> str:
        self.done.append("driver goes on")
        return "went on"


def injector(
    proxies: Proxies, *ids: str, lost: Callable[[], str] = lambda: "lost"
) -> FaultInjector:
    faults = [parse_fault(id) for id in ids]
    crash = lambda: proxies.done.append("crash")  # noqa: E731
    return FaultInjector(proxies, faults, crash, lost, Driver(proxies.done))  # type: ignore[arg-type]


def event(step: str, phase: str = "before", **detail: Any) -> TraceEvent:
    return TraceEvent(step, phase, "driver", detail=detail)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "armed", "done"),
    [
        ("omit(db/COMMIT=1)", ("omit", "nth", "once", True), []),
        ("omit-reply(db/COMMIT=1) and each time again", ("omit-reply", "nth", "retries", True), []),
        ("crash(driver, after db/COMMIT=1)", ("omit-reply", "nth", "once", True), ["crash"]),
        ("restart(server, before db/COMMIT=1)", ("omit", "nth", "once", True), ["restart"]),
        ("restart(server, after db/COMMIT=1)", ("omit-reply", "nth", "once", True), ["restart"]),
        (
            "restart(server, answered db/COMMIT=1)",
            ("omit-reply", "nth", "once", False),
            ["restart"],
        ),
        ("pause(server, before db/COMMIT=1)", ("omit", "nth", "once", False), ["pause", "resume"]),
        (
            "unavailable(db/POST /rows=1)",
            ("omit", "nth", "once", True, "HTTP/1.1 503 Service Unavailable"),
            [],
        ),
        (
            "unavailable(db/POST /rows=1) and each time again",
            ("omit", "nth", "retries", True, "HTTP/1.1 503 Service Unavailable"),
            [],
        ),
        ("refuse(db/COMMIT=1)", ("refuse", "nth", "once", True), []),
        (
            "timeout(db/POST /rows=1)",
            ("omit-reply", "nth", "once", True, "HTTP/1.1 504 Gateway Timeout"),
            [],
        ),
    ],
)
def test_a_fault_on_the_wire_is_in_force_from_the_beginning(
    fault: str, armed: tuple[Any, ...], done: list[str]
) -> None:
    proxies = Proxies()
    run = injector(proxies, fault)
    run.arm()
    assert [one.what for one in proxies.armed] == [armed]
    assert run.end() == (fault,)  # nothing was hit
    if action := proxies.armed[0].action:
        action()
    proxies.armed[0].fired = 1
    run.starts()
    assert proxies.done == done
    assert run.end() == ()
    assert run.evidence == {fault: "hit the request, 1 time(s)"}


@pytest.mark.parametrize("end", ["starts", "end"])
@pytest.mark.parametrize(
    ("fault", "closes"),
    [("pause(server, before db/COMMIT=1)", False), ("silence(db/COMMIT=1)", True)],
)
def test_nothing_is_heard_of_a_request_until_the_client_gives_up(
    fault: str, closes: bool, end: str
) -> None:
    """A server that is not ours cannot be stopped: what is sent to it is on its way so long."""
    proxies = Proxies(ours=False)
    run = injector(proxies, fault)
    run.arm()
    (armed,) = proxies.armed
    assert armed.action is not None
    assert armed.what == ("omit", "nth", "once", closes)
    armed.fired = 1
    held = threading.Thread(target=armed.action)
    held.start()
    while held.is_alive():  # it may not have begun to wait when that is said first
        getattr(run, end)()
    held.join(60)
    assert proxies.done == []
    assert run.end() == ()


class Timers(list[Callable[[], object]]):
    """What is to be done when the time is up; ``seconds``: in how long."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def __call__(self, seconds: float, act: Callable[[], object]) -> Timers:
        self.append(act)
        self.seconds.append(seconds)
        return self

    def start(self) -> None:
        pass


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    made = Timers()
    monkeypatch.setattr(threading, "Timer", made)
    return made


def met(run: FaultInjector, proxies: Proxies) -> None:
    """The one fault of a run is met."""
    run.arm()
    (armed,) = proxies.armed
    assert armed.action is not None
    armed.fired = 1
    armed.action()


@pytest.mark.parametrize("then", ["goes on", "fails", "asks again"])
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("omit(db/COMMIT=1) and each time again", "requests are lost"),
        ("unavailable(db/POST /rows=1) and each time again", "503 is the answer"),
    ],
)
def test_a_client_that_does_not_give_up_is_known_afterwards(
    fault: str, what: str, then: str, timers: Timers
) -> None:
    """Who sends again for ever what was lost may still give up after five answers."""
    proxies = Proxies()
    run = injector(proxies, fault)
    met(run, proxies)
    if then == "goes on":
        run.met(event("batch=0/commits"))
    elif then == "fails":
        run.starts()
    (time_is_up,) = timers
    time_is_up()
    assert run.clients.endless == ({(what, "db")} if then == "asks again" else set())


@pytest.mark.parametrize(
    ("then", "alike"),
    [
        ([(40, None)], True),
        ([(80, None)], False),
        ([(40, 9)], False),
        ([(40, None), (0, None)], False),
    ],
    ids=["waits", "sends more", "closes its connection", "connects anew"],
)
def test_who_only_waits_for_a_server_cannot_tell_that_it_stands_still(
    then: list[tuple[int, int | None]], alike: bool, timers: Timers
) -> None:
    proxies = Proxies(made=[(40, None)])
    run = injector(proxies, "pause(server, before db/COMMIT=1)")
    met(run, proxies)
    proxies.made = then
    (time_is_up,) = timers
    time_is_up()
    silent = {("nothing is heard", "db")} if alike else set()
    assert run.clients.endless == {("it stands still", "db")} | silent


def test_who_is_silent_for_a_short_time_may_give_up_later_what_is_another_silence(
    timers: Timers,
) -> None:
    proxies, known = Proxies(), (STANDS_STILL, "db")
    run = injector(proxies, "pause(server, before db/COMMIT=1)")
    run.clients = Clients({known})
    met(run, proxies)
    (time_is_up,) = timers
    time_is_up()
    assert (run.clients.endless, timers.seconds) == ({known}, [PATIENCE_S])


def test_what_another_lane_has_shown_of_a_client_ends_the_wait_for_it(timers: Timers) -> None:
    fault = "omit(db/COMMIT=1) and each time again"
    proxies, others = Proxies(), Proxies()
    run, other = injector(proxies, fault), injector(others, fault)
    other.clients = run.clients
    met(run, proxies)
    met(other, others)
    time_is_up, too_late = timers
    time_is_up()
    _, _, enough = timers
    assert timers.seconds[:2] == [LONG_S, LONG_S]
    assert timers.seconds[2] <= PATIENCE_S
    assert not others.armed[0].healed
    enough()
    assert others.armed[0].healed
    too_late()
    assert len(timers) == 3


def test_a_run_that_is_over_is_told_nothing(timers: Timers) -> None:
    fault = "omit(db/COMMIT=1) and each time again"
    proxies, others = Proxies(), Proxies()
    run, other = injector(proxies, fault), injector(others, fault)
    other.clients = run.clients
    met(run, proxies)
    met(other, others)
    other.end()
    timers[0]()
    assert len(timers) == 2


LATE = "pause(driver, before db/COMMIT=1)"


def held_at_its_request(proxies: Proxies) -> tuple[Armed, threading.Thread]:
    """The one cut that is armed has been met: what it was, and the driver's thread that stands
    still there."""
    (at,) = proxies.armed
    assert at.action is not None
    held = threading.Thread(target=at.action)
    at.fired = 1
    held.start()
    while not proxies.done:
        assert held.is_alive()
    return at, held


@pytest.mark.parametrize("end", ["third", "run", "released"])
def test_a_driver_stands_still_until_the_one_that_takes_over_is_done(end: str) -> None:
    proxies = Proxies()
    run = injector(proxies, LATE)
    run.arm()
    run.starts()
    armed, held = held_at_its_request(proxies)
    assert armed.what == ("omit", "nth", "once", False)
    run.starts()  # the one that takes over
    assert proxies.done == ["driver stops"]
    {"third": run.starts, "run": run.let_go, "released": run.release}[end]()
    held.join(60)
    assert proxies.done == ["driver stops", "driver goes on"]
    assert run.end() == ()
    told = "stopped; the one that took over was done; went on"
    assert run.evidence == {LATE: f"hit the request, 1 time(s); {told}"}


def test_it_goes_on_when_the_one_that_takes_over_waits_for_what_it_has_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(injector_module, "_ANSWER_S", 0.0)
    proxies = Proxies(waiting=frozenset({9}))
    run = injector(proxies, LATE)
    run.arm()
    run.hold_driver(LATE)
    proxies.armed[0].fired = 1
    assert run.end() == ()
    assert "the one that took over waited for it" in run.evidence[LATE]


AMID = "pause(driver, before db/COMMIT=1 until db/batch=2/INSERT=1)"


@pytest.mark.parametrize("end", ["ended", "released"])
def test_a_driver_wakes_amid_a_batch_of_its_successor_which_waits_for_its_end(end: str) -> None:
    proxies = Proxies()
    run = injector(proxies, AMID)
    run.arm()
    run.starts()
    run.met(event("batch=2/offsets", "after"))  # nobody stands still yet
    at, held = held_at_its_request(proxies)
    run.starts()
    run.met(event("batch=1/offsets", "after"))
    assert proxies.armed == [at]
    for _ in range(2):
        run.met(event("batch=2/offsets", "after"))
    _, until = proxies.armed
    assert until.what == ("omit", "batch", "once", False)
    assert until.action is not None
    assert run.end() == (AMID,)
    waits = threading.Thread(target=until.action)
    waits.start()
    held.join(60)
    assert proxies.done == ["driver stops", "driver goes on"]
    run.ended(2)
    assert waits.is_alive()
    {"ended": lambda: run.ended(1), "released": run.release}[end]()
    waits.join(60)
    assert not waits.is_alive()
    assert run.end() == ()
    assert "was amid a batch; went on" in run.evidence[AMID]


def test_a_driver_wakes_amid_its_successors_replay_by_what_that_asks_from_its_start() -> None:
    proxies = Proxies()
    fault = "pause(driver, before db/INSERT=1 until db/restarted/BEGIN=3)"
    run = injector(proxies, fault)
    run.arm()
    run.starts()
    at, held = held_at_its_request(proxies)
    run.met(event("batch=2/offsets", "after"))
    assert proxies.armed == [at]
    run.starts()
    _, until = proxies.armed
    assert until.what == ("omit", "since", "once", False)
    assert until.action is not None
    waits = threading.Thread(target=until.action)
    waits.start()
    held.join(60)
    run.ended(1)
    waits.join(60)
    assert not waits.is_alive()
    assert run.end() == ()
    assert "was amid a batch; went on" in run.evidence[fault]


def test_a_driver_that_woke_when_all_was_done_was_not_amid_a_batch() -> None:
    proxies = Proxies()
    run = injector(proxies, AMID)
    run.arm()
    run.let_go()
    (at,) = proxies.armed
    at.fired = 1
    held = threading.Thread(target=run.hold_driver, args=(AMID,))
    held.start()
    while not proxies.done:
        assert held.is_alive()
    run.let_go()
    held.join(60)
    assert run.end() == (AMID,)


SHOWN, NEXT = "batch=1/sink.file=3.rename", "batch=2/sink.file=3.rename"
AT_FILES = f"pause(driver, from {SHOWN} until {NEXT})"


@pytest.mark.parametrize("starts", [1, 2], ids=["goes on", "ends by itself after each batch"])
def test_a_driver_held_at_a_file_wakes_amid_the_next_batch_of_another(starts: int) -> None:
    proxies = Proxies()
    run = injector(proxies, AT_FILES)
    run.arm()
    run.starts()
    run.met(event(NEXT))  # nobody stands still yet
    held = threading.Thread(target=run.met, args=(event(SHOWN),))
    held.start()
    while not proxies.done:
        assert held.is_alive()
    for _ in range(starts):
        run.starts()
    run.met(event(SHOWN))  # of the successor: it goes on
    assert run.end() == (AT_FILES,)
    waits = threading.Thread(target=run.met, args=(event(NEXT),))
    waits.start()
    held.join(60)
    assert proxies.done == ["driver stops", "driver goes on"]
    assert waits.is_alive()
    run.ended(1)
    waits.join(60)
    assert not waits.is_alive()
    assert run.end() == ()
    assert "was amid a batch; went on" in run.evidence[AT_FILES]


def test_a_driver_held_at_a_file_until_all_was_done_was_not_amid_a_batch() -> None:
    proxies = Proxies()
    run = injector(proxies, AT_FILES)
    run.arm()
    held = threading.Thread(target=run.met, args=(event(SHOWN),))
    held.start()
    while not proxies.done:
        assert held.is_alive()
    run.let_go()
    held.join(60)
    assert run.end() == (AT_FILES,)


LATER = "batch=1/sink.file=5.rename"
AT_REPLAY = f"pause(driver, from {SHOWN} until {LATER})"


@pytest.mark.parametrize(
    ("fault", "done", "goes_past", "missing"),
    [
        (AT_REPLAY, True, "", ()),
        (AT_REPLAY, True, "batch=1/sink.file=9.look", ()),
        (AT_REPLAY, True, "batch=2/sink.file=4.open", ()),
        (AT_REPLAY, True, "batch=1/sink.file=2.write", ()),
        (AT_REPLAY, True, "batch=1/sink.file=4.open", (AT_REPLAY,)),
        (AT_REPLAY, False, "", (AT_REPLAY,)),
        (AT_FILES, True, "", (AT_FILES,)),
    ],
)
def test_who_finds_the_batch_done_replays_nothing_that_another_could_go_on_amid(
    fault: str, done: bool, goes_past: str, missing: tuple[str, ...]
) -> None:
    proxies = Proxies()
    run = injector(proxies, fault)
    run.arm()
    held = threading.Thread(target=run.met, args=(event(SHOWN),))
    held.start()
    while not proxies.done:
        assert held.is_alive()
    run.met(event(LATER.replace("5.rename", "7.mkdir"), outside=True))  # it starts the query
    if goes_past:
        run.met(event(goes_past))
    run.let_go(done)
    held.join(60)
    run.met(event("batch=1/sink.file=6.open"))  # of the first one, which goes on
    assert run.end() == missing


@pytest.mark.parametrize("at_files", [False, True])
def test_a_driver_goes_on_when_its_successor_does_not_come_on(at_files: bool) -> None:
    """It waits for a lock that is no request, such as one on a file."""
    proxies = Proxies()
    fault = AT_FILES if at_files else AMID
    run = injector(proxies, fault)
    run.arm()
    hold = (lambda: run.met(event(SHOWN))) if at_files else (lambda: run.hold_driver(AMID))
    for one in proxies.armed:
        one.fired = 1
    held = threading.Thread(target=hold)
    held.start()
    while not proxies.done:
        assert held.is_alive()
    run.end_wait()
    held.join(10)
    assert proxies.done == ["driver stops", "driver goes on"]
    assert run.end() == ()
    assert "the one that took over waited for it; went on" in run.evidence[fault]


def test_a_fault_after_a_restart_waits_for_it() -> None:
    proxies = Proxies()
    run = injector(proxies, "omit(db/restarted/COMMIT=1)")
    run.arm()
    run.starts()
    assert proxies.armed == []
    run.starts()
    run.starts()
    assert [one.what for one in proxies.armed] == [("omit", "since", "once", True)]


def test_one_connection_is_turned_away_from_a_step_on() -> None:
    proxies, fault = Proxies(), refused_once("db", 1).id
    run = injector(proxies, fault)
    run.met(event("batch=1/offsets"))
    assert run.end() == (fault,)
    for _ in range(2):
        run.met(event("batch=1/offsets", "after"))
    assert [one.what for one in proxies.armed] == [("refuse", "db")]
    proxies.armed[0].fired = 1
    assert run.end() == ()


@pytest.mark.parametrize(
    ("at", "second"),
    [
        (MIDDLE, event("batch=1/stage=0/p=0/a=1/task", "after")),
        (MIDDLE, event("batch=1/stage=0/p=0/a=0/task", "after", stageAttempt=1)),
        ("batch=1/state/op=0/p=0/2.delta", event("batch=1/state/op=0/p=0/2.delta", "after")),
    ],
    ids=["attempt", "stage", "state"],
)
def test_an_executor_is_lost_until_a_second_attempt_is_done(at: str, second: TraceEvent) -> None:
    fault, reached = f"lost-executor(before {at}, goes on)", threading.Event()

    def lost() -> str:
        reached.set()
        return "Spark lost sight of it"

    run = injector(Proxies(), fault, lost=lost)
    held = threading.Thread(target=run.met, args=(event(at),))
    held.start()
    assert reached.wait(60)
    while fault not in run.evidence:
        held.join(0.01)
    assert run.end() == (fault,)  # there was no second attempt yet
    for other in (
        event("batch=1/stage=0/p=1/a=1/task", "after"),
        event("batch=0/stage=0/p=0/a=1/task", "after"),
        event("batch=1/stage=0/p=0/a=0/task", "after"),
    ):
        run.met(other)
    assert run.end() == (fault,)
    run.met(second)
    held.join(60)
    assert not held.is_alive()
    assert run.end() == ()


def test_a_second_attempt_may_be_done_before_it_is_said_that_the_first_is_lost() -> None:
    fault = f"lost-executor(before {MIDDLE}, goes on)"

    def lost() -> str:
        run.met(event("batch=1/stage=0/p=0/a=1/task", "after"))
        return "Spark lost sight of it"

    run = injector(Proxies(), fault, lost=lost)
    run.met(event(MIDDLE))
    assert run.end() == ()
