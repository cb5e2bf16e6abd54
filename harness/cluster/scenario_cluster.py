"""The nodes of one run of a scenario, on whatever backend, and where its files are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from bettong.engine.net.client import Patience
from bettong.engine.spark.notes import SparkNotes
from bettong.engine.steps import Instrumentation
from bettong.engine.storage.disk_log import lose, makes
from bettong.harness.cluster.broker import KAFKA, Broker
from bettong.harness.cluster.cluster import Cluster
from bettong.harness.cluster.driver_node import DriverNode
from bettong.harness.cluster.environment import Environment
from bettong.harness.cluster.layout import DRIVER_JOB, DRIVER_PROCESS, MODULES, SENDER, Layout
from bettong.harness.cluster.nodes import CommandNode, Node
from bettong.harness.cluster.repeater import Repeaters
from bettong.harness.conductor.run_control import RunControl
from bettong.harness.faults.actuator import Direction, InjectionOutcome
from bettong.harness.faults.point import DRIVER
from bettong.harness.faults.step_ids import REPLAY
from bettong.harness.processes.patience import patience
from bettong.harness.scenario import Component, Scenario

_SOON_S = 3.0
_SOONER_S = 1.0


class RunCluster(Cluster):
    """The nodes of one run of a scenario in what a backend has made ready."""

    def __init__(
        self,
        environment: Environment,
        scenario: Scenario,
        layout: Layout,
        spares_jvm: bool = False,
    ) -> None:
        lasting: dict[str, Node] = dict(environment.spark)
        if environment.broker is not None:
            lasting[KAFKA] = environment.broker
        super().__init__(environment.links, lasting)
        self._environment = environment
        self._scenario = scenario
        self._layout = layout
        self._spares_jvm = spares_jvm
        self._off: dict[str, tuple[str, ...]] = {}
        self.repeaters = Repeaters(environment.platform.conductor)

    def begin(self, control: RunControl) -> None:
        """Start every node: first the servers, then those that connect to them."""
        self.control = control
        self.repeaters.plan(
            link for fault in control.schedule.faults for link in fault.repeated_links
        )
        self.accounts = self._layout.accounts
        self.accounts.mkdir(exist_ok=True)
        instrumentation = Instrumentation(
            run=control.run,
            conductor=self._environment.conductor,
            disk=str(self.accounts),
        )
        servers = [
            self._server(name, module, instrumentation)
            for name, module in MODULES.items()
            if name in self._scenario.servers
        ]
        if servers:
            self._start_all(servers)
        if self._environment.broker is not None:
            self._fill_topics(self._environment.broker)
        if self._scenario.inputs == "folder":
            self._fill_folders()
        senders = (self._sender(s, n, instrumentation) for s, n in self._scenario.senders.items())
        self._start_all([self._driver(instrumentation), *senders])

    def kill_servers(self) -> None:
        """SIGKILL the servers of this run alone; everything else of it has ended."""
        for name in self._own(listens=True):
            self.crash(name)

    def loses_apart(self) -> bool:
        """Whether of the nodes that :meth:`lose_power` some have made what is not durable, and
        others have only removed something."""
        return {makes(file) for file in self._losing()} >= {True, False}

    def lose_power(self, *, apart: bool = False) -> None:
        """Take away what is not durable on any disk, when all have ended; or, where nodes lose
        power ``apart`` from each other, on the disks of those that have made something of it. A
        sender waits for none of its notes to be: they stay."""
        for file in self._losing():
            if not apart or makes(file):
                lose(file)

    def _losing(self) -> list[Path]:
        senders = set(self._scenario.senders.values())
        return [file for file in self._layout.accounts.iterdir() if file.stem not in senders]

    def start_again(self, control: RunControl) -> None:
        """Start every node of this run once more, under another book: first the servers, then those
        that connect to them."""
        self.control = control
        for listens in (True, False):
            self._start_each(self._own(listens))

    def _own(self, listens: bool) -> list[str]:
        own = (node for name, node in self.nodes.items() if name not in self.lasting)
        return [node.name for node in own if node.listens == listens]

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        evidence = [super().partition(fault, left, right, direction)]
        if direction == "both":
            off = self._disconnected
            self._off[fault] = alone = cut_off(left, right, self._environment.links_between)
            platform = self._environment.platform
            evidence += [platform.disconnect(node) for node in alone if node not in off]
        return "; ".join(filter(None, evidence))

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        self._reconnect(fault)
        return super().heal(fault, step_failed)

    def close(self) -> None:
        for fault in list(self._off):
            self._reconnect(fault)
        super().close()

    def _reconnect(self, fault: str) -> None:
        for node in self._off.pop(fault, ()):
            if node not in self._disconnected:
                self._environment.platform.reconnect(node)

    @property
    def _disconnected(self) -> frozenset[str]:
        """The nodes that some partition in force leaves without any link."""
        return frozenset(node for alone in self._off.values() for node in alone)

    def finish(self) -> None:
        """Give the hosts of drivers back whose query has ended."""
        for driver in (self.nodes.get(DRIVER), *self.zombies):
            if isinstance(driver, DriverNode):
                driver.finish()

    @property
    def jvms_spared(self) -> int:
        """How many crashes and power cuts have spared the JVM of the driver."""
        drivers = (self.nodes.get(DRIVER), *self.zombies)
        return sum(driver.spared for driver in drivers if isinstance(driver, DriverNode))

    def undo_last_commit(self) -> str:
        """Make the next start of the driver do the last batch again, as after a crash right before
        it counted as done. Returns the step id under which that is reported.

        The in-process runner has no log of commits, and does so at every start.
        """
        notes = SparkNotes(self._layout.checkpoint / "spark")
        last = notes.last_done
        if last < 0:
            return f"{REPLAY}last"
        for name in (str(last), f".{last}.crc"):
            (notes.checkpoint / "commits" / name).unlink(missing_ok=True)
        return f"{REPLAY}batch={last}"

    def _server(
        self, name: Component, module: str, instrumentation: Instrumentation
    ) -> CommandNode:
        own = self._scenario.classes.get(name)
        return CommandNode(
            name,
            instrumentation,
            self._layout.log(name),
            [
                *(module, "--dir", str(self._layout.folder / name)),
                *(("--class", own) if own else ()),
                *self._scenario.options.get(name, ()),
                *self._environment.platform.server_options,
            ],
            listen=self._environment.listen[name],
            launch=self._environment.platform.modules(name),
        )

    def _driver(self, instrumentation: Instrumentation) -> Node:
        scenario = self._scenario
        job = {
            "versions": [*scenario.earlier, scenario.application],
            "inputs": scenario.inputs,
            "outputs": scenario.outputs,
            "servers": {s: self._way(DRIVER, s) for s in scenario.servers},
            "topics": self.control.run,
            "folders": {
                source.name: str(self._layout.input_folder(source.name))
                for source in scenario.load_application().sources
            },
            "shared": str(self._layout.files),
            "checkpoint": str(self._layout.checkpoint),
            "batch": scenario.batch,
            "live": bool(scenario.moments),
            "partitions": scenario.partitions,
            "classes": dict(scenario.classes),
            "timeout_s": self._answer_s,
            "give_up_s": self._driver_gives_up_s,
        }
        log = self._layout.log(DRIVER)
        if self._environment.supply is not None:
            supply = self._environment.supply
            return DriverNode(
                DRIVER, instrumentation, log, supply, DRIVER_JOB, job, self._spares_jvm
            )
        launch = self._environment.platform.modules(DRIVER)
        command = [DRIVER_PROCESS, json.dumps(job)]
        return CommandNode(DRIVER, instrumentation, log, command, launch=launch)

    def _way(self, a: str, server: str) -> str:
        return self.repeaters.way(f"{a}->{server}", self._environment.way(a, server))

    @property
    def _answer_s(self) -> float:
        """Seconds that a client waits for an answer. Where a fault lasts until a client gives up,
        the run has nothing else to do meanwhile: then it is short, but longer than it takes to see
        that nobody goes on; where only a thread stands still nobody has to see that."""
        silent = [fault for fault in self.control.schedule.faults if fault.is_silent]
        unseen = [
            fault.holds_thread and not (fault.until_idle or fault.until_still) for fault in silent
        ]
        waits = (patience(_SOONER_S if one else _SOON_S) for one in unseen)
        return max(waits, default=Patience.timeout_s)

    @property
    def _driver_gives_up_s(self) -> float:
        """Seconds that the driver asks again for, where it gets no answer."""
        ends = any(fault.ends_patience for fault in self.control.schedule.faults)
        return 0.0 if ends else Patience.give_up_s

    def _sender(self, stream: str, name: str, instrumentation: Instrumentation) -> Node:
        gateway = self._way(name, "gateway")
        layout = self._layout
        command = [
            *(SENDER, "--gateway", gateway),
            *("--stream", stream, "--input", str(layout.input(stream))),
            *("--frame", str(self._scenario.frame), "--window", str(self._scenario.window)),
            *("--acked", str(layout.acked(stream))),
            *("--outcome", str(layout.outcome(stream)), "--timeout", f"{self._answer_s:g}"),
        ]
        return CommandNode(
            name,
            instrumentation,
            layout.log(name),
            command,
            launch=self._environment.platform.modules(name),
        )

    def _fill_topics(self, broker: Broker) -> None:
        """Put the input where it is to come from, and make room for the outputs."""
        run, scenario = self.control.run, self._scenario
        app = scenario.load_application()
        streams = [s.name for s in app.sources] if scenario.inputs == "kafka" else []
        sinks = [s.name for s in app.sinks] if scenario.outputs == "kafka" else []
        inputs = {f"{run}.{s}": self._messages(s) for s in streams}
        broker.fill(inputs, [f"{run}.{s}" for s in sinks])

    def _fill_folders(self) -> None:
        """Put the input into files, of which every other one ends without a line end."""
        for source in self._scenario.load_application().sources:
            folder = self._layout.input_folder(source.name)
            folder.mkdir()
            messages, each = self._messages(source.name), self._scenario.frame
            for number, at in enumerate(range(0, len(messages), each)):
                content = b"\n".join(messages[at : at + each]) + b"\n" * (number % 2)
                (folder / f"{number:04d}").write_bytes(content)

    def _messages(self, stream: str) -> list[bytes]:
        return self._layout.input(stream).read_bytes().split(b"\n")[:-1]

    def _start_all(self, nodes: Sequence[Node]) -> None:
        """Start several nodes side by side; raises the first error."""
        self.nodes.update((node.name, node) for node in nodes)
        self._start_each([node.name for node in nodes])

    def _start_each(self, names: Sequence[str]) -> None:
        """The same by their names."""
        with ThreadPoolExecutor(max(1, len(names))) as threads:
            list(threads.map(self.start, names))


def cut_off(left: Sequence[str], right: Sequence[str], links: Sequence[str]) -> tuple[str, ...]:
    """The nodes that a partition in both directions leaves without any of these links."""
    crossing = {frozenset(pair) for pair in product(left, right)}
    pairs = {frozenset(link.split("->")) for link in links}
    return tuple(node for node in (*left, *right) if {p for p in pairs if node in p} <= crossing)
