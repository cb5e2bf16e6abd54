"""The nodes of a sink's run: a driver that can be crashed, paused and replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from bettong.engine.storage.durability import Keep
from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.harness.processes.session import session_members
from bettong.harness.queries.run.host import QueryHost
from bettong.harness.queries.run.signals import Signals
from bettong.harness.queries.run.state import copy_state, replace_state
from bettong.lineage.errors import BettongError


class NotOnWireError(BettongError):
    """A fault that cannot hit what a query asks of its endpoints."""


class DriverControl:
    """Carries out on the driver what the faults ask, and signals the run's main thread.

    A crash is one of two kinds. A *real* one is SIGKILL of all the driver's processes. A *kept*
    one spares the warm JVM: at the crash's exact moment, while the step waits for its answer, the
    durable state is copied and the links are cut; what the doomed query still does happens to
    state that is thrown away, behind links that lead nowhere.

    Attributes:
        incarnation: of the driver in charge, counted from 1.
        still: the processes of drivers that stand still.
        signals: what happened, for the main thread.
    """

    def __init__(
        self,
        state: Path,
        real: bool,
        cut_links: Callable[[int], None],
        refuse: Callable[[str, str, int], str],
    ) -> None:
        self._state = state
        self._real = real
        self._cut_links = cut_links
        self._refuse = refuse
        self.incarnation = 0
        self.host: QueryHost | None = None
        self.paused: list[QueryHost] = []
        self.still: frozenset[int] = frozenset()
        self._kept: Path | None = None
        self._lock = threading.Lock()
        self._crashed: set[int] = set()
        self.signals = Signals()

    def takes_over(self, host: QueryHost) -> int:
        """This host is the driver from now on; its incarnation."""
        self.host = host
        self.incarnation += 1
        return self.incarnation

    def crash(self, node: str) -> tuple[int, InjectionOutcome]:
        """Crash the driver in charge."""
        assert self.host is not None
        with self._lock:
            number, host = self.incarnation, self.host
            if number in self._crashed:
                return number, InjectionOutcome(False, "it was dead already")
            self._crashed.add(number)
        if self._real:
            evidence = str(host.kill())
        else:
            self._cut_links(number)
            self._kept = self._state.with_name(f"{self._state.name}-{number}")
            copy_state(self._state, self._kept)
            evidence = f"incarnation {number} ends here: its state was kept as it was"
        self.signals.put("crashed", number)
        return number, InjectionOutcome(True, evidence)

    def bring_back(self) -> None:
        """Put the state in place that the latest kept crash has left."""
        assert self._kept is not None
        replace_state(self._state, self._kept)

    def has_crashed(self, incarnation: int) -> bool:
        """Whether it was crashed; the signal that says so may be on its way still."""
        with self._lock:
            return incarnation in self._crashed

    def stop(self, node: str) -> tuple[int, InjectionOutcome]:
        """The server of a sink under check is not ours to stop."""
        raise BettongError("a query's driver is crashed, not stopped: there is no server of ours")

    def restart(self, node: str) -> None:
        """The main thread does it when it knows of the crash."""

    def cut_power(self, node: str, keep: Keep) -> tuple[int, InjectionOutcome]:
        """What a sink's own code has not synced is not known here."""
        raise BettongError(
            "a power cut needs the engine's disk layer, which a sink under check does not write "
            "through: use crash, or storage at one of its sink.file steps"
        )

    def pause(self, node: str) -> InjectionOutcome:
        """Stop the driver in charge; another one takes over."""
        assert self.host is not None
        evidence = self.host.pause()
        self.paused.append(self.host)
        self.still |= frozenset(session_members(self.host.pid))
        self.signals.put("paused", self.incarnation)
        return InjectionOutcome(True, evidence)

    def resume(self, node: str) -> str:
        """Let the paused drivers go on: zombies."""
        self.still = frozenset()
        for host in self.paused:
            host.resume()
        return f"{len(self.paused)} driver(s) went on"

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        """Endpoints refuse the driver's connections."""
        return "; ".join(self._refuse(fault, endpoint, self.incarnation) for endpoint in right)

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        raise NotOnWireError(f"{fault}: a query's requests are hit one by one, not its links")

    def repeat(self, fault: str, link: str) -> str:
        raise NotOnWireError(f"{fault}: a query's requests are not delivered twice")

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        """It has ended with the incarnation that it hit."""
        return InjectionOutcome(True, "")
