"""One run of a sink under one fault schedule, from an empty target until the source is drained."""

from __future__ import annotations

import queue
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bettong.engine.steps import Instrumentation
from bettong.harness.faults import Fault
from bettong.harness.run_control import RunControl
from bettong.harness.schedule import Schedule
from bettong.harness.sinks.arena import Arena
from bettong.harness.sinks.job import CALL, Target
from bettong.harness.sinks.moments import DURABLE, FileSteps, Moment, moments
from bettong.harness.sinks.nodes import DRIVER, DriverControl
from bettong.harness.sinks.rows import Input
from bettong.harness.sinks.secrets import masked
from bettong.harness.sinks.situations import Situation
from bettong.harness.sinks.state import digest_state, replace_state
from bettong.harness.sinks.wire_faults import CLOCK, WireFault
from bettong.harness.sinks.wires import Wires
from bettong.harness.spark.driver import DriverDiedError, DriverHost, JobError
from bettong.harness.stages import StageNumbers
from bettong.harness.wire import Armed, Recording
from bettong.lineage.errors import BettongError
from bettong.lineage.trace import TraceEvent, write_trace

AnyFault = Fault | WireFault | Situation

INCARNATION_S = 120.0
MOST_INCARNATIONS = 8
STOP_S = 10.0


class SinkError(BettongError):
    """The sink itself cannot be judged: which part of it failed, and how."""


@dataclass
class SinkRun:
    """What one run showed.

    Attributes:
        rows: what a reader saw at the end.
        looks: what a reader saw after each crash, before the query was started again.
        events: the trace.
        moments: its events as places for faults.
        evidence, not_fired: of the planned faults.
        errors: why incarnations of the query failed, other than by a crash.
        unreadable: why read() failed in the end, or empty.
        drained: whether every batch was committed in the end.
        checkpoint_used: whether the query kept its checkpoint where it was told.
        unused: endpoints to which no byte went.
        recording: what crossed the wires.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    looks: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    events: list[TraceEvent] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    evidence: Mapping[str, str] = field(default_factory=dict)
    not_fired: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list)
    unreadable: str = ""
    drained: bool = False
    checkpoint_used: bool = False
    unused: tuple[str, ...] = ()
    recording: Recording = field(default_factory=lambda: Recording(()))
    incarnations: int = 0
    seconds: float = 0.0

    def write_trace(self, path: Path) -> None:
        """Write the trace as JSON lines."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_trace(path, self.events)


class SinkRunner:
    """Runs one sink, again and again."""

    def __init__(self, arena: Arena, target: Target, source: Input, wires: Wires) -> None:
        self._arena = arena
        self._target = target
        self._source = source
        self._wires = wires

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
        run = _Run(self._arena, self._target, self._source, self._wires, faults)
        return run.run(replay_layout, real)


_ORDINARY = Situation("", "")


class _Control(RunControl):
    """The book of a run in which the driver can also be crashed by what crosses a wire."""

    def has_died(self, node: str, incarnation: int) -> None:
        """This incarnation must not take another step."""
        with self._changed:
            self._dead[node] = max(incarnation, self._dead.get(node, 0))


class _Run:
    def __init__(
        self,
        arena: Arena,
        target: Target,
        source: Input,
        wires: Wires,
        faults: Sequence[AnyFault],
    ) -> None:
        self._arena = arena
        self._target = target
        self._source = source
        self._wires = wires
        self._id = arena.next_run()
        self._state = arena.folder / self._id
        self._stages = StageNumbers()
        self._files = FileSteps()
        self._jobs: dict[int, Future[Any]] = {}
        self._hosts: list[DriverHost] = []
        self._committed = 0
        self._failed_at = -1
        self._faults = faults
        situations = [f for f in faults if isinstance(f, Situation)]
        self._situation = situations[0] if situations else _ORDINARY
        self._armed: dict[str, Armed] = {}
        self._result = SinkRun()

    def run(self, replay_layout: int, real: bool) -> SinkRun:
        begun = time.monotonic()
        self._replay_layout = replay_layout
        self._real = real
        self._driver = DriverControl(self._state, real, self._cut_links)
        placed = [f for f in self._faults if not isinstance(f, WireFault | Situation)]
        schedule = Schedule(tuple(placed))
        self._control = _Control(self._id, self._driver, schedule, None, self._observe)
        self._state.mkdir(parents=True)
        self._wires.begin()
        self._arena.conductor.begin(self._control)
        try:
            self._arm()
            self._incarnations()
            if self._situation.new_checkpoint:
                self._start_anew()
            self._end_paused()
            self._result.checkpoint_used = (self._state / "checkpoint" / "offsets").is_dir()
            self._result.unused = tuple(self._wires.unused())
            self._take_evidence()
            self._result.recording = self._wires.recorder.recording()
            self._read_back()
        finally:
            self._arena.conductor.end(self._control)
            for host in self._hosts:
                self._arena.pool.release(host)
            self._wires.end(self._id)
            shutil.rmtree(self._state, ignore_errors=True)
        result = self._result
        result.events = self._control.events
        result.moments = moments(result.events)
        result.incarnations = self._driver.incarnation
        result.seconds = time.monotonic() - begun
        return result

    def _observe(self, event: TraceEvent) -> TraceEvent:
        """Called at each event while its process waits: note what is durable now."""
        durable = f"{digest_state(self._state)}"
        if said := self._wires.said():
            # What a server holds is known by what it was told, which is known within a run only.
            durable += f" {self._id} {said}"
        detail = {**event.detail, DURABLE: durable, CLOCK: self._wires.clock()}
        return self._files(self._stages(replace(event, detail=detail)))

    # --- faults on the wire

    def _arm(self) -> None:
        for fault in self._faults:
            if isinstance(fault, WireFault):
                crashes = fault.how == "crash"
                self._armed[fault.id] = self._wires.recorder.arm(
                    fault.point,
                    "retries" if fault.how == "always lost" else "once",
                    self._crash_at_request if crashes else None,
                )

    def _crash_at_request(self) -> None:
        self._control.has_died(DRIVER, self._driver.incarnation)
        self._driver.crash(DRIVER)

    def _heal(self) -> None:
        """A new incarnation meets a fault that lasted no more."""
        for armed in self._armed.values():
            if armed.evidence().fired:
                armed.heal()

    def _take_evidence(self) -> None:
        evidence = dict(self._control.evidence)
        missing = list(self._control.not_fired)
        for id, armed in self._armed.items():
            found = armed.heal()
            if found.fired:
                evidence[id] = f"struck {found.request}, {found.times} time(s)"
            else:
                missing.append(id)
        self._result.evidence, self._result.not_fired = evidence, tuple(missing)

    def _cut_links(self, incarnation: int) -> None:
        self._wires.cut(self._id, incarnation)

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
        """Everything once more, with an empty checkpoint."""
        shutil.rmtree(self._state / "checkpoint")
        self._start(["write"])
        number = self._driver.incarnation
        self._jobs[number].exception(INCARNATION_S)
        self._take_result(number)

    def _start(self, parts: list[str]) -> None:
        if self._driver.host is None or self._driver.host in self._driver.paused:
            host = self._arena.pool.acquire()
            self._hosts.append(host)
        else:
            host = self._driver.host
        self._stages.restart()
        self._files.restart()
        self._heal()
        number = self._driver.takes_over(host)
        self._addresses = self._wires.open(self._id, number)
        instrumentation = Instrumentation(self._id, DRIVER, number, self._arena.conductor.address)
        job = host.submit(CALL, self._arguments(parts, number), instrumentation)
        self._jobs[number] = job
        job.add_done_callback(lambda _: self._driver.signals.put(("ended", number)))

    def _arguments(self, parts: list[str], number: int) -> dict[str, Any]:
        layout = 0 if number == 1 else self._replay_layout
        return {
            "target": asdict(self._target),
            "directory": str(self._state),
            "run_id": self._id,
            "addresses": self._addresses,
            "source": {**asdict(self._situation.input(self._source, number)), "layout": layout},
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
        self._hosts.remove(host)
        self._arena.pool.kill(host)
        self._driver.host = None

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
        if self._driver.host is None:
            self._hosts.append(self._arena.pool.acquire())
        host = self._driver.host or self._hosts[-1]
        arguments = self._arguments(["read", "teardown"], self._driver.incarnation)
        try:
            self._result.rows = host.run(CALL, arguments, timeout=INCARNATION_S)["rows"]
        except (JobError, TimeoutError) as e:
            self._result.unreadable = str(e) or "it does not return"
