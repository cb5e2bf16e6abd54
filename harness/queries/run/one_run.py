"""One run of a sink under one fault schedule, from an empty target until the source is drained."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bettong.harness.conductor.run_control import RunControl
from bettong.harness.conductor.stage_numbers import StageNumbers
from bettong.harness.events import FaultInjected, Handler, RunStarted, steps_of
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.schedule import Schedule
from bettong.harness.faults.step_ids import CONCURRENT, StepId
from bettong.harness.processes.patience import patience
from bettong.harness.queries.faults.crash_points import (
    DURABLE,
    FileSteps,
    crash_points,
    lines_asked,
)
from bettong.harness.queries.faults.operations import event_of
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wire import CLOCK
from bettong.harness.queries.faults.zombie import WAITED, Zombie
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.clients import Clients
from bettong.harness.queries.run.deadline import Deadline
from bettong.harness.queries.run.driver_control import DriverControl
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironment
from bettong.harness.queries.run.file_locks import FileLocks
from bettong.harness.queries.run.host import HostPool
from bettong.harness.queries.run.incarnations import INCARNATION_S, Incarnations, SinkError
from bettong.harness.queries.run.injector import FaultInjector
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.overlaps import at_once
from bettong.harness.queries.run.polled_lock import Polls
from bettong.harness.queries.run.progress import Progress
from bettong.harness.queries.run.signals import Signal
from bettong.harness.queries.run.standing import stands
from bettong.harness.queries.run.state import Moments, batches_as_cut
from bettong.harness.queries.run.takeover import own
from bettong.harness.queries.run.workload import Workload
from bettong.harness.queries.sink.file_steps import LOCKING
from bettong.harness.queries.sink.ran_lines import noted
from bettong.harness.spark.driver import DriverDiedError, JobError
from bettong.lineage.errors import BettongError
from bettong.lineage.search.executor import BudgetSpentError
from bettong.lineage.trace import TraceEvent

_ASIDE = 0
"""The links' number of what is no incarnation: incarnations are counted from 1."""
_CONNECTED = (("before", "source.middle"), ("before", "commits"))
"""Steps at which a query that keeps a connection open is connected: amid a task, and at the end of
a batch."""
_ASKED_S = 5.0
"""A driver that has taken over, has asked a server and gets no answer for so long, or that takes no
step for so long where it locks a file while the one that stands still has locked one, waits for
that. Where the system tells who waits for its lock, nothing else has to be waited for."""


class OneRun:
    """One run; ``run`` is called once.

    Args:
        pools: of the first incarnation's driver, and of the later ones'.
        replay_layout: layout of the rows from the second incarnation on.
        real: crashes are SIGKILL.
        clients: what they have shown of clients.
        hold: called at each event while its process waits, before a fault fires there.
    """

    def __init__(
        self,
        spark_environment: SparkEnvironment,
        pools: tuple[HostPool[Any], HostPool[Any]],
        workload: Workload,
        endpoint_proxies: EndpointProxies,
        faults: Sequence[QueryFault],
        replay_layout: int,
        real: bool,
        on_event: Handler,
        deadline: Deadline,
        clients: Clients,
        hold: Callable[[TraceEvent], object] = lambda event: None,
    ) -> None:
        self._environment = spark_environment
        self._hold = hold
        self._workload = workload
        self._proxies = endpoint_proxies
        self._faults = faults
        self._replay_layout = replay_layout
        self._real = real
        self._deadline = deadline
        self._clients = clients
        self._on_event = on_event
        self._id = spark_environment.next_run()
        self._state = spark_environment.folder / self._id
        self._locks = FileLocks(self._state)
        self._operation: object = None
        self._stages = StageNumbers()
        self._files = FileSteps()
        self._moments = Moments()
        self._progress = Progress()
        self._result = QueryRun(id=self._id)
        self._ended_at = -1, 0
        self._anew = self._waited = False
        self._expired: list[dict[str, Any]] = []
        self._operational_event = event_of(faults)
        self._loses = any(fault.loses_executor for fault in faults)
        self._driver = DriverControl(self._state, real, self._cut_links, self._refuse)
        self._injector = FaultInjector(
            endpoint_proxies,
            faults,
            self._crash_at_request,
            self._lose_executor,
            self._driver,
            clients,
        )
        placed = [at_step for f in faults if not f.operational for at_step in f.placed]
        self._lines = lines_asked(f.start for f in faults if isinstance(f, Zombie))
        schedule = Schedule((*placed, *self._operational_event.placed))
        self._control = RunControl(
            self._id,
            self._driver,
            schedule,
            None,
            self._observe,
            on_step=steps_of(self._id, on_event),
        )
        address = spark_environment.conductor.address
        self._incarnations = Incarnations(
            self._driver,
            pools,
            spark_environment.pool,
            self._id,
            (address, workload.call),
            self._starts,
            deadline,
        )

    def run(self) -> QueryRun:
        """Raises SinkError when the sink cannot even set up or read back, BudgetSpentError when
        the time is up before it has ended."""
        with self._in_time():
            return self._run()

    def left_by_setup(self) -> list[dict[str, Any]]:
        """No run: the rows that a reader sees when ``setup`` has made an empty target. Raises
        as :meth:`run` does."""
        with self._in_time(), self._under_way():
            self._set_up()
            found = self._ask("look", "teardown").get("looked")
        return found or []

    def left_elsewhere(self) -> list[dict[str, Any]]:
        """No run: the rows that a reader sees in a folder in which nothing is and nothing was set
        up. Raises as :meth:`run` does."""
        with self._in_time(), self._under_way():
            try:
                found = self._ask("look").get("looked")
            except (DriverDiedError, JobError, TimeoutError):
                self._expect_time()
                return []  # it cannot be read where nothing was set up
        return found or []

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        watch = threading.Timer(min(self._deadline.left, threading.TIMEOUT_MAX), self._expire)
        watch.daemon = True
        watch.start()
        try:
            yield
        except BettongError:
            self._expect_time()
            raise
        except TimeoutError as e:
            self._expect_time()
            raise SinkError(
                f"what reads the target does not return in {INCARNATION_S:.0f} s"
            ) from e
        finally:
            watch.cancel()

    def _expire(self) -> None:
        """Called when the time is up: what is under way ends, whatever it waits for."""
        self._incarnations.expire()
        self._driver.signals.put("expired", 0)

    def _expect_time(self) -> None:
        if self._deadline.passed:
            raise BudgetSpentError("the time that the check may take ended in the midst of a run")

    def _run(self) -> QueryRun:
        begun = time.monotonic()
        self._on_event(RunStarted(self._id, tuple(fault.id for fault in self._faults)))
        with self._under_way():
            self._injector.arm()
            self._until_drained()
            self._end_pauses()
            if self._operational_event.anew:
                self._start_anew()
            self._injector.let_go(self._result.drained)
            for number in self._incarnations.unended():
                self._result.errors.append(f"incarnation {number} did not end")
            checkpoint = self._workload.checkpoint(self._state)
            self._result.checkpoint_used = bool(checkpoint and (checkpoint / "offsets").is_dir())
            if checkpoint is not None:
                self._result.cut = batches_as_cut(checkpoint, self._id)
            self._result.unused = tuple(self._proxies.unused())
            self._result.left = tuple(self._proxies.left())
            self._take_evidence()
            self._result.recording = self._proxies.recorder.recording()
            self._read_back()
        failure = self._control.failure
        if failure is not None and not isinstance(failure, BettongError):
            raise failure  # else a fault could not be put in force, and has not fired
        result = self._result
        result.events = self._control.events
        if not self._faults:
            result.concurrent |= at_once(result.recording, result.events)
        result.crash_points = crash_points(result.events)
        result.seconds = time.monotonic() - begun
        return result

    @contextlib.contextmanager
    def _under_way(self) -> Iterator[None]:
        """Everything that a run needs is there, and gone afterwards."""
        self._state.mkdir(parents=True)
        self._proxies.begin()
        self._workload.begin(self._id, self._state, self._operational_event)
        self._environment.conductor.begin(self._control)
        try:
            yield
        finally:
            self._environment.conductor.end(self._control)
            self._proxies.end(self._id)
            self._injector.release()
            # A host that has lost sight of itself holds tasks for ever.
            self._incarnations.release(spoilt=self._loses or self._deadline.passed)
            self._workload.end()
            self._result.ran = noted(self._state)
            shutil.rmtree(self._state, ignore_errors=True)

    # --- what happens while the query runs

    def _observe(self, event: TraceEvent) -> TraceEvent:
        """Called at each event while its process waits: feed the query, note what is durable."""
        self._workload.observe(event)
        if not self._faults and (event.phase, StepId.parse(event.step).last) in _CONNECTED:
            self._look_past()
        event = own(event) if self._driver.paused else event
        durable = f"{self._moments.digest(self._state)} {self._proxies.request_digest(self._id)}"
        if event.incarnation == self._driver.incarnation:
            self._operation = event.detail.get("op")
        if self._progress.comes_on(event, durable):
            self._driver.signals.word()
        detail = {**event.detail, DURABLE: durable, CLOCK: self._proxies.clock()}
        named = self._stages(self._files(replace(event, detail=detail)))
        if (beside := event.detail.get(CONCURRENT)) is not None:
            self._result.concurrent.add(beside)
        self._hold(named)
        self._injector.met(named)
        return named

    def _look_past(self) -> None:
        """Whoever connects to a server itself is not seen, and never hit."""
        host = self._driver.host
        if host is not None:
            self._result.past |= set(self._proxies.bypassed(host.pid))

    def _crash_at_request(self) -> None:
        self._control.has_died(DRIVER, self._driver.incarnation)
        self._driver.crash(DRIVER)

    def _cut_links(self, incarnation: int) -> None:
        self._proxies.cut(self._id, incarnation)

    def _refuse(self, fault: str, endpoint: str, incarnation: int) -> str:
        return self._injector.refuse(fault, endpoint, self._id, incarnation)

    def _lose_executor(self) -> str:
        assert self._driver.host is not None
        self._driver.host.lose_executor()
        return "Spark was told that the executor was lost"

    # --- one incarnation after the other

    def _until_drained(self) -> None:
        self._set_up()
        self._start()
        while self._driver.incarnation < self._workload.most_incarnations:
            errors = len(self._result.errors)
            happened = self._next()
            if happened is None:
                seconds = f"{self._workload.patience_s:.0f} s"
                quiet = self._workload.in_vain() or f"the query did nothing more for {seconds}"
                self._result.errors.append(quiet + stands(self._incarnations.where()))
                self._incarnations.stop()
                return
            signal, number = happened
            if signal == "crashed":
                self._incarnations.mark_dead(killed=self._real)
                self._look()
                self._pass_time()
                self._start()
            elif signal == "paused":
                self._start()
            elif signal == "expired":
                self._expect_time()
            elif number != self._driver.incarnation or self._driver.has_crashed(number):
                # A zombie; or one whose links were cut before its crash was reported.
                self._injector.ended(number)
            elif self._take_result(number):
                committed, before = self._commits(), self._ended_at
                failed = len(self._result.errors) > errors
                self._result.drained = self._workload.drained(committed, failed)
                self._ended_at = committed, self._fired()
                if self._result.drained:
                    return
                if self._ended_at == before:  # it has failed again without a fault
                    if not self._lets_go_on():
                        return  # and would for ever
                    list(self._incarnations.unended())
                self._start()

    def _next(self) -> tuple[Signal, int] | None:
        """The next signal; None when drivers do nothing more. One that stands still goes on when
        the one that took over waits for it."""
        signals, patience_s = self._driver.signals, self._workload.patience_s
        asked, polls = frozenset[int](), Polls(self._clients.locks)
        signals.word()
        while self._driver.paused and not self._waited:
            happened = signals.next(min(patience(_ASKED_S), patience_s), self._waits_for_lock)
            if happened is not None:
                return happened
            since = self._result.starts[-1]
            before, asked = asked, self._proxies.unanswered(since)
            met, awaits = self._proxies.recorder.met(), self._proxies.awaits(since)
            has_begun = self._control.has_spoken(DRIVER, self._driver.incarnation)
            silent = has_begun and polls.waited(signals.silent_s, met, awaits)
            if before & asked or silent or self._waits_for_lock() or self._stands_at_lock():
                self._lets_go_on()
            elif signals.silent_s >= patience_s:
                return None
        return signals.next(patience_s, lambda: bool(self._workload.in_vain()))

    def _waits_for_lock(self) -> bool:
        """Whether a process is known to wait for what a driver that stands still has locked."""
        return self._locks.waited_for(self._driver.still)

    def _stands_at_lock(self) -> bool:
        """Whether the driver in charge has come to where it locks a file, and the one that stands
        still has locked one: SQLite asks for its locks again and again."""
        return self._operation in LOCKING and self._locks.held_to_write(self._driver.still)

    def _lets_go_on(self) -> bool:
        """Have a driver that stands still go on, without which the one that took over does not come
        on, as it has locked something; False if there is none, or this was done before."""
        if not self._driver.paused or self._waited:
            return False
        self._waited = True
        self._control.end_unended(WAITED, done=True)
        self._injector.end_wait()
        return True

    def _end_pauses(self) -> None:
        """A driver that stands still until a batch that its successor has not had goes on when that
        one has no more to do, or cannot do it: a new start may plan other batches without data."""
        drained = self._result.drained
        ended = "had ended the work" if drained else "could not end the work"
        self._control.end_unended(f"the one that took over {ended}", done=drained)

    def _set_up(self) -> None:
        try:
            self._ask("setup")
        except (DriverDiedError, JobError, TimeoutError) as e:
            raise SinkError(f"setup(): {cause(str(e) or 'it does not return')}") from e

    def _look(self) -> None:
        """What a reader sees between a crash and the restart; the target may not be there yet."""
        self._injector.heal()
        looked = self._looked()
        if looked is not None:
            self._result.looks.append((f"restart {self._driver.incarnation}", looked))

    def _looked(self) -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = self._ask("look").get("looked")
        return found

    def _pass_time(self) -> None:
        """Until the restart: servers may forget what they were told to keep for a while. Rows that
        are meant to be gone by then are not missed."""
        ahead_s = self._operational_event.ahead_s
        if ahead_s and self._proxies.pass_time(ahead_s) and self._result.looks:
            left = self._looked()
            if left is not None:  # what cannot be read tells of no row that it was meant to go
                self._expired += [row for row in self._result.looks[-1][1] if row not in left]

    def _start_anew(self) -> None:
        """The query once more, with an empty checkpoint."""
        shutil.rmtree(self._state / "checkpoint")
        self._result.drained, self._anew = False, True
        self._result.anew = self._driver.incarnation + 1
        number, errors = self._start(), len(self._result.errors)
        if self._has_ended(number):
            self._take_result(number)
            self._result.drained = len(self._result.errors) == errors

    def _has_ended(self, number: int) -> bool:
        """Wait for an incarnation that no fault hits for as long as it goes on."""
        while (happened := self._driver.signals.next(self._workload.patience_s)) is not None:
            if happened[0] == "expired":
                self._expect_time()
            if happened == ("ended", number):
                return True
        return False

    def _ask(self, *parts: str) -> dict[str, Any]:
        """What is done beside the query, over links of its own; only a replay has its rows dealt
        out in another way. Raises JobError, TimeoutError."""
        self._addresses = self._proxies.open(self._id, _ASIDE)
        try:
            asked = self._arguments(parts, self._driver.incarnation, 0)
            found: dict[str, Any] = self._incarnations.ask(asked)
            self._take_notes(found)
        finally:
            self._proxies.cut(self._id, _ASIDE)
        return found

    def _start(self) -> int:
        def arguments(number: int) -> dict[str, Any]:
            self._addresses = self._proxies.open(self._id, number)
            layout = 0 if number <= 1 else self._replay_layout
            ahead_s = 0 if number <= 1 else self._operational_event.ahead_s
            return self._arguments(["write"], number, layout, ahead_s)

        return self._incarnations.start(arguments)

    def _starts(self) -> None:
        self._operation = None
        self._workload.starts(self._driver.incarnation + 1)
        self._stages.restart()
        self._files.restart()
        self._injector.starts()
        self._result.starts.append(self._proxies.clock())

    def _arguments(
        self, parts: Sequence[str], number: int, layout: int, ahead_s: int = 0
    ) -> dict[str, Any]:
        return {
            "directory": str(self._state),
            "run_id": self._id,
            "addresses": self._addresses,
            "parts": list(parts),
            "lines": self._lines,
            "ahead_s": ahead_s,
            **self._workload.arguments(number, layout, self._anew),
        }

    def _take_result(self, number: int) -> bool:
        """The outcome of an incarnation that ended by itself; False when it was killed."""
        done = self._incarnations.outcome(number)
        if done is None:
            return False
        self._take_notes(done)
        if done["error"] is not None:
            self._result.errors.append(done["error"])
        if done.get("facts"):
            self._result.facts.append(done["facts"])
        return True

    def _take_notes(self, done: Mapping[str, Any]) -> None:
        self._result.outside |= set(done.get("outside", ()))
        self._result.processes |= set(done.get("processes", ()))
        self._result.in_turn |= done.get("in_turn", False)

    def _commits(self) -> int:
        """How many batches Spark has recorded as done."""
        steps = {e.step for e in self._control.events if e.phase == "after"}
        return sum(StepId.parse(step).ends_batch for step in steps)

    def _fired(self) -> int:
        """How many faults have fired so far."""
        return len(self._control.evidence) + self._injector.fired

    # --- what it has shown

    def _take_evidence(self) -> None:
        missing = [*self._injector.end()]
        for id, evidence in self._injector.evidence.items():
            if id not in self._control.evidence:  # of which the trace has said so
                self._on_event(FaultInjected(self._id, id, evidence))
        reported = {**self._control.evidence, **self._injector.evidence}
        missing += [id for id in self._control.not_fired if id not in reported]
        for crash in self._operational_event.placed:  # it is reported by the event's name
            proof = reported.pop(crash.id, None)
            missing = [id for id in missing if id != crash.id]
            if proof is None and self._stood_first():
                reported[self._operational_event.id] = self._took_place()
            elif proof is None:
                missing.append(self._operational_event.id)
            else:
                reported[self._operational_event.id] = proof + self._added()
        for fault in self._faults:
            if not fault.operational and len(fault.placed) > 1:
                missing = [id for id in missing if id not in {x.id for x in fault.placed}]
                fired = fault.fired([reported.pop(x.id, "") for x in fault.placed])
                if fired:
                    reported[fault.id] = fired
                else:
                    missing.append(fault.id)
        event = self._operational_event
        if event.at_first and not event.placed and self._driver.incarnation < 2:
            missing.append(event.id)  # nothing was stopped, so nothing began again
        elif event.more_partitions and not self._workload.added and event.id not in missing:
            missing.append(event.id)
        elif event.id and not event.placed:
            reported[event.id] = self._took_place()
        self._result.evidence, self._result.not_fired = reported, tuple(missing)

    def _stood_first(self) -> bool:
        """Whether the query has stood still where it may, before the driver was to die."""
        stood = bool(self._result.errors) and not self._result.drained
        return stood and self._operational_event.may_stand_first

    def _took_place(self) -> str:
        """The proof of an operational event that no fault brings about."""
        started, done = self._driver.incarnation, self._commits()
        failed = f", {len(self._result.errors)} of them failed" if self._result.errors else ""
        told = f"the query was started {started} time(s){failed}; {done} batches were recorded"
        return told + self._added()

    def _added(self) -> str:
        return f"; {self._workload.added}" if self._workload.added else ""

    def _read_back(self) -> None:
        try:
            rows = self._ask("read", "teardown")["rows"]
            self._result.rows = rows + [row for row in self._expired if row not in rows]
        except (DriverDiedError, JobError, TimeoutError) as e:
            self._result.unreadable = str(e) or "it does not return"
