"""One run of a sink under one fault schedule, from an empty target until the source is drained."""

from __future__ import annotations

import contextlib
import queue
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.faults import Cut
from bettong.harness.run_control import RunControl
from bettong.harness.schedule import Schedule
from bettong.harness.sinks.arena import Arena
from bettong.harness.sinks.job import CALL, Target
from bettong.harness.sinks.moments import DURABLE, FileSteps, moments
from bettong.harness.sinks.nodes import DRIVER, DriverControl
from bettong.harness.sinks.observed import SinkRun
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.secrets import masked
from bettong.harness.sinks.sink_faults import AnyFault, LostExecutor
from bettong.harness.sinks.situations import Situation
from bettong.harness.sinks.state import digest_state, replace_state
from bettong.harness.sinks.strikes import Strikes
from bettong.harness.sinks.wire_faults import CLOCK, WireFault
from bettong.harness.sinks.wires import Wires
from bettong.harness.spark.driver import DriverDiedError, DriverHost, JobError
from bettong.harness.spark.pool import DriverPool
from bettong.harness.stages import StageNumbers
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import TraceEvent

INCARNATION_S = 120.0
MOST_INCARNATIONS = 8
STOP_S = 10.0


class SinkError(BettongError):
    """The sink itself cannot be judged: which part of it failed, and how."""


class SinkRunner:
    """Runs one sink, again and again.

    ``two_cores`` gives the arena of runs in which two tasks are to be there at once.
    """

    def __init__(
        self,
        arena: Arena,
        target: Target,
        source: Input,
        wires: Wires,
        two_cores: Callable[[], Arena] | None = None,
    ) -> None:
        self._arena = arena
        self._target = target
        self._source = source
        self._wires = wires
        self._two_cores = two_cores or (lambda: arena)

    def run(
        self,
        faults: Sequence[AnyFault] = (),
        *,
        replay_layout: int = 0,
        real: bool = False,
    ) -> SinkRun:
        """One run.

        Args:
            faults: struck together.
            replay_layout: layout of the rows from the second incarnation on.
            real: crashes are SIGKILL.

        Raises SinkError when the sink cannot even set up or read back.
        """
        first, later = self._arena.pool, self._arena.pool
        if any(isinstance(fault, LostExecutor) for fault in faults):
            first = later = self._two_cores().pool
        elif any(isinstance(fault, Situation) and fault.cores for fault in faults):
            later = self._two_cores().pool
        run = _Run(self._arena, (first, later), self._target, self._source, self._wires, faults)
        return run.run(replay_layout, real)


_ORDINARY = Situation("", "")


class _Run:
    def __init__(
        self,
        arena: Arena,
        pools: tuple[DriverPool, DriverPool],
        target: Target,
        source: Input,
        wires: Wires,
        faults: Sequence[AnyFault],
    ) -> None:
        self._arena = arena
        self._pools = pools
        self._target = target
        self._source = source
        self._wires = wires
        self._id = arena.next_run()
        self._state = arena.folder / self._id
        self._stages = StageNumbers()
        self._files = FileSteps()
        self._jobs: dict[int, Future[Any]] = {}
        self._hosts: dict[DriverHost, DriverPool] = {}
        self._committed = 0
        self._failed_at = -1
        self._anew = False
        self._faults = faults
        situations = [f for f in faults if isinstance(f, Situation)]
        self._situation = situations[0] if situations else _ORDINARY
        self._loses = any(isinstance(f, LostExecutor) for f in faults)
        self._strikes = Strikes(wires, faults, self._crash_at_request, self._lose_executor)
        self._result = SinkRun(id=self._id)

    def run(self, replay_layout: int, real: bool) -> SinkRun:
        begun = time.monotonic()
        self._replay_layout = replay_layout
        self._real = real
        self._driver = DriverControl(self._state, real, self._cut_links, self._refuse)
        besides = WireFault | Situation | LostExecutor
        placed = [f for f in self._faults if not isinstance(f, besides)]
        schedule = Schedule((*placed, *self._situation.placed))
        self._control = RunControl(self._id, self._driver, schedule, None, self._observe)
        self._state.mkdir(parents=True)
        self._wires.begin()
        self._arena.conductor.begin(self._control)
        try:
            self._strikes.arm()
            self._incarnations()
            if self._situation.anew is not None:
                self._start_anew()
            self._end_paused()
            self._result.checkpoint_used = (self._state / "checkpoint" / "offsets").is_dir()
            self._result.unused = tuple(self._wires.unused())
            self._result.left = tuple(self._wires.left())
            self._take_evidence()
            self._result.recording = self._wires.recorder.recording()
            self._read_back()
        finally:
            self._arena.conductor.end(self._control)
            self._wires.end(self._id)
            self._strikes.release()
            for host, pool in self._hosts.items():
                if self._loses:  # it has lost sight of itself, and tasks of it are held
                    pool.kill(host)
                else:
                    pool.release(host)
            shutil.rmtree(self._state, ignore_errors=True)
        result = self._result
        result.events = self._control.events
        result.moments = moments(result.events)
        result.seconds = time.monotonic() - begun
        return result

    def _observe(self, event: TraceEvent) -> TraceEvent:
        """Called at each event while its process waits: note what is durable now."""
        durable = f"{digest_state(self._state)} {self._wires.said(self._id)}"
        detail = {**event.detail, DURABLE: durable, CLOCK: self._wires.clock()}
        named = self._files(self._stages(replace(event, detail=detail)))
        self._strikes.met(named)
        return named

    def _crash_at_request(self) -> None:
        self._control.has_died(DRIVER, self._driver.incarnation)
        self._driver.crash(DRIVER)

    def _cut_links(self, incarnation: int) -> None:
        self._wires.cut(self._id, incarnation)

    def _refuse(self, fault: Cut, incarnation: int) -> str:
        return self._strikes.refuse(fault, self._id, incarnation)

    def _lose_executor(self) -> str:
        assert self._driver.host is not None
        self._driver.host.lose_executor()
        return "Spark was told that the executor was lost"

    def _take_evidence(self) -> None:
        missing = [*self._strikes.end()]
        told = {**self._control.evidence, **self._strikes.evidence}
        missing += [id for id in self._control.not_fired if id not in told]
        for crash in self._situation.placed:  # it is told by the situation's name
            proof = told.pop(crash.id, None)
            missing = [id for id in missing if id != crash.id]
            if proof is None:
                missing.append(self._situation.id)
            else:
                told[self._situation.id] = proof
        if self._situation.id and not self._situation.placed:
            told[self._situation.id] = self._took_place()
        self._result.evidence, self._result.not_fired = told, tuple(missing)

    def _took_place(self) -> str:
        """The proof of a situation that no fault brings about."""
        started, done = self._driver.incarnation, self._commits()
        failed = f", {len(self._result.errors)} of them failed" if self._result.errors else ""
        return f"the query was started {started} time(s){failed}; {done} batches were recorded"

    def _incarnations(self) -> None:
        self._start(["setup", "write"])
        while self._driver.incarnation < MOST_INCARNATIONS:
            try:
                signal, number = self._driver.signals.get(timeout=INCARNATION_S)
            except queue.Empty:
                self._give_up()
                return
            if signal == "crashed":
                self._bury()
                self._start(["look", "write"])
            elif signal == "paused":
                self._start(["write"])
            elif number != self._driver.incarnation or self._driver.has_crashed(number):
                continue  # a zombie; or one whose links were cut before its crash was told of
            elif self._take_result(number):
                before, self._committed = self._committed, self._commits()
                self._result.drained = self._committed == self._source.batches
                if self._result.drained or self._committed == before == self._failed_at:
                    return  # at the end, or where it was after the failure before this one
                self._failed_at = self._committed
                self._start(["write"])

    def _start_anew(self) -> None:
        """The query once more, with an empty checkpoint."""
        shutil.rmtree(self._state / "checkpoint")
        self._result.drained, self._anew = False, True
        self._start(["write"])
        number, errors = self._driver.incarnation, len(self._result.errors)
        with contextlib.suppress(TimeoutError):
            self._jobs[number].exception(INCARNATION_S)
            self._take_result(number)
            self._result.drained = len(self._result.errors) == errors

    def _start(self, parts: list[str]) -> None:
        host = self._driver.host
        pool = self._pools[self._driver.incarnation > 0]
        if host is None or host in self._driver.paused or self._hosts[host] is not pool:
            host = self._acquire(pool)
        self._stages.restart()
        self._files.restart()
        self._strikes.heal()
        number = self._driver.takes_over(host)
        self._addresses = self._wires.open(self._id, number)
        instrumentation = Instrumentation(self._id, DRIVER, number, self._arena.conductor.address)
        job = host.submit(CALL, self._arguments(parts, number), instrumentation)
        self._jobs[number] = job
        job.add_done_callback(lambda _: self._driver.signals.put(("ended", number)))

    def _arguments(self, parts: list[str], number: int) -> dict[str, Any]:
        layout = 0 if number == 1 else self._replay_layout
        source = self._situation.input(self._source, number)
        if self._anew:
            source = self._situation.again(self._source)
        return {
            "target": asdict(self._target),
            "directory": str(self._state),
            "run_id": self._id,
            "addresses": self._addresses,
            "source": {**asdict(source), "layout": layout},
            "parts": parts,
        }

    def _take_result(self, number: int) -> bool:
        """The outcome of an incarnation that ended by itself; False when it was killed."""
        try:
            done = self._jobs[number].result(0)
        except DriverDiedError:
            return False
        except JobError as e:
            raise SinkError(masked(str(e))) from e
        if done["error"] is not None:
            self._result.errors.append(done["error"])
        if done.get("looked") is not None:
            self._result.looks.append((f"restart {number - 1}", done["looked"]))
        return True

    def _bury(self) -> None:
        """See the crashed incarnation off, and bring back the state that it left."""
        host, number = self._driver.host, self._driver.incarnation
        assert host is not None
        if self._real:
            self._lose(host)
        else:
            try:
                host.stop_queries(STOP_S)
                self._jobs[number].exception(STOP_S)
            except (TimeoutError, DriverDiedError):
                self._lose(host)
            assert self._driver.kept is not None
            replace_state(self._state, self._driver.kept)

    def _give_up(self) -> None:
        """The query neither ends nor goes on."""
        self._result.errors.append(f"the query did nothing more for {INCARNATION_S:.0f} s")
        host = self._driver.host
        assert host is not None
        try:
            host.stop_queries(STOP_S)
            self._jobs[self._driver.incarnation].exception(STOP_S)
        except (TimeoutError, DriverDiedError):
            self._lose(host)

    def _lose(self, host: DriverHost) -> None:
        self._hosts.pop(host).kill(host)
        self._driver.host = None

    def _acquire(self, pool: DriverPool) -> DriverHost:
        host = pool.acquire()
        self._hosts[host] = pool
        return host

    def _end_paused(self) -> None:
        """Zombies do what they do, until their queries end or have nothing left to do."""
        for number, job in self._jobs.items():
            if not job.done():
                try:
                    job.exception(INCARNATION_S)
                except TimeoutError:
                    self._result.errors.append(f"incarnation {number} did not end")

    def _commits(self) -> int:
        """How many batches Spark has recorded as done."""
        steps = {e.step for e in self._control.events if e.phase == "after"}
        return sum(f"batch={n}/commits" in steps for n in range(self._source.batches))

    def _read_back(self) -> None:
        host = self._driver.host or self._acquire(self._pools[1])
        arguments = self._arguments(["read", "teardown"], self._driver.incarnation)
        try:
            self._result.rows = host.run(CALL, arguments, timeout=INCARNATION_S)["rows"]
        except (JobError, TimeoutError) as e:
            self._result.unreadable = str(e) or "it does not return"
