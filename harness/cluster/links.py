"""Directed links between nodes, each through Toxiproxy, and the faults that hit them.

A connection is opened by one side, but carries messages both ways. What travels on the link
``a->b`` is the upstream of the proxies that a connects to and the downstream of those that b
connects to.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, product

from bettong.harness.faults.actuator import Direction, Disturbance, InjectionOutcome
from bettong.harness.toxiproxy import Armed, ProxiedLink, Proxy, Stream, Toxic, Toxiproxy
from bettong.lineage.errors import BettongError

FIRE_TIMEOUT = 3.0
CROSS_TIMEOUT = 30.0
_POLL_S = 0.002
_OTHER: dict[Stream, Stream] = {"upstream": "downstream", "downstream": "upstream"}
_sets = count(1)
_toxics = count(1)


class LinkError(BettongError):
    """A fault names a link on which nothing travels."""


@dataclass(frozen=True, slots=True)
class _Leg:
    """One proxy and the stream of it that belongs to a directed link."""

    proxy: ProxiedLink
    stream: Stream


class Links:
    """Proxies, and the faults in force on them."""

    def __init__(self, client: Toxiproxy) -> None:
        self._client = client
        self._prefix = f"{os.getpid()}.{next(_sets)}"
        self._proxies: dict[tuple[str, str], list[ProxiedLink]] = {}
        self._armed: dict[str, list[Armed]] = {}
        self._persistent: set[frozenset[str]] = set()
        self._lock = threading.Lock()

    def connect(
        self, a: str, b: str, upstream: str, listen: str = "127.0.0.1:0", persists: bool = False
    ) -> str:
        """Give a its own way to b's address ``upstream``; the ``host:port`` that a has to use.

        A client that ``persists`` asks again by itself within one step: what is lost there is lost
        once, and not until the step has ended.
        """
        with self._lock:
            if persists:
                self._persistent.add(frozenset((a, b)))
            proxies = self._proxies.setdefault((a, b), [])
            name = f"{self._prefix} {a}->{b} {len(proxies)}"
            made = ProxiedLink(self._client, self._client.create(Proxy(name, upstream, listen)))
            proxies.append(made)
        return "{}:{}".format(*made.address)

    def disturb(self, fault: str, link: str, disturbance: Disturbance) -> str:
        """Put a toxic on a link; the evidence. Raises LinkError when nothing travels there."""
        legs = self._legs(link)
        if not legs:
            raise LinkError(f"nothing travels on the link {link}")
        armed = [leg.proxy.arm(_toxic(disturbance, leg.stream)) for leg in legs]
        self._armed[fault] = armed
        if disturbance.loses and frozenset(link.split("->")) in self._persistent:
            threading.Thread(target=self._heal_when_fired, args=(fault,), daemon=True).start()
        return _in_force(armed)

    def partition(
        self, fault: str, left: tuple[str, ...], right: tuple[str, ...], direction: Direction
    ) -> str:
        """Cut nodes off from each other; the evidence. Raises LinkError when nothing travels
        between them."""
        legs = [leg for a, b in product(left, right) for leg in self._legs(f"{a}->{b}")]
        if not legs:
            raise LinkError(f"{fault}: nothing travels between these nodes")
        self._armed[fault] = armed = [_cut(leg, direction) for leg in legs]
        if direction == "both":
            return "; ".join(_refusal(a.link.address) for a in armed)
        return _in_force(armed)

    def heal(self, fault: str, step_failed: bool) -> InjectionOutcome:
        """End a fault. When the step it hits waits for no reply, first wait (not long) until
        the proxy has seen what the step has sent, and has given on what it only slows down: that
        would come at once when the fault is ended, as if there had been none."""
        armed = self._armed.pop(fault)
        if not step_failed:
            _within(FIRE_TIMEOUT, lambda: _fired(armed))
            _within(CROSS_TIMEOUT, lambda: not _holding(armed))
        held = 0 if step_failed else _holding(armed)
        with self._lock:
            evidence = [a.heal() for a in armed]
        if held:
            return InjectionOutcome(False, f"{held} bytes had not crossed in {CROSS_TIMEOUT:g} s")
        known = [e.fired for e in evidence if e.fired is not None]
        dropped = sum(sum(e.detail.get("dropped", {}).values()) for e in evidence)
        killed = sum(e.detail.get("killed", 0) for e in evidence)
        words = [f"{dropped} bytes held back"] if dropped else []
        words += [f"{killed} connections closed"] if killed else []
        return InjectionOutcome(any(known) if known else None, ", ".join(words) or "healed")

    def _heal_when_fired(self, fault: str) -> None:
        while armed := self._armed.get(fault):
            if _fired(armed):
                with self._lock:
                    for each in armed:
                        each.heal()
                return
            time.sleep(_POLL_S)

    def mend(self) -> None:
        """End every fault that is still in force."""
        for fault in list(self._armed):
            for armed in self._armed.pop(fault):
                armed.heal()

    def close(self) -> None:
        """Remove the proxies."""
        for proxies in self._proxies.values():
            for proxy in proxies:
                self._client.delete(proxy.name)
        self._proxies.clear()

    def _legs(self, link: str) -> list[_Leg]:
        a, _, b = link.partition("->")
        return [_Leg(p, "upstream") for p in self._proxies.get((a, b), [])] + [
            _Leg(p, "downstream") for p in self._proxies.get((b, a), [])
        ]


def _cut(leg: _Leg, direction: Direction) -> Armed:
    if direction == "both":
        return leg.proxy.refuse()
    return leg.proxy.hold(leg.stream if direction == "forward" else _OTHER[leg.stream])


def _in_force(armed: list[Armed]) -> str:
    return f"in force on {', '.join('{}:{}'.format(*a.link.address) for a in armed)}"


def _fired(armed: list[Armed]) -> bool:
    return any(a.evidence().fired for a in armed)


def _holding(armed: list[Armed]) -> int:
    return sum(a.holding() for a in armed)


def _within(seconds: float, reached: Callable[[], bool]) -> None:
    """Wait until it is so, but no longer."""
    deadline = time.monotonic() + seconds
    while not reached() and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _refusal(address: tuple[str, int]) -> str:
    """Knock at a proxy that is cut; the evidence that nobody opens."""
    try:
        socket.create_connection(address, timeout=FIRE_TIMEOUT).close()
    except ConnectionRefusedError:
        return "{}:{} refuses connections".format(*address)
    except OSError as e:
        return "{}:{}: {}".format(*address, e)
    raise LinkError("{}:{} still accepts connections after its cut".format(*address))


def _toxic(disturbance: Disturbance, stream: Stream) -> Toxic:
    name = f"fault-{next(_toxics)}"  # evidence is kept by name, also after healing
    affected = _OTHER[stream] if disturbance.of_reply else stream
    return Toxic(disturbance.toxic, affected, disturbance.attributes, name)
