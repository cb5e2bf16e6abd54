"""Recording conversations and cutting them, for code that lives in other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from bettong.engine.address import Address
from bettong.harness.wire.armed import ArmedCut, ArmedRefusal, Lasts, WireEvidence
from bettong.harness.wire.bypass import direct_clients
from bettong.harness.wire.conversation import Recording
from bettong.harness.wire.cutpoints import CutPoint
from bettong.harness.wire.framing.registry import framings
from bettong.harness.wire.recorded import recorded
from bettong.harness.wire.relay import Listener, Relay
from bettong.harness.wire.run import WireRun
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.nearest import one_of

T = TypeVar("T")

_CALL_SECONDS = 30.0


class WireError(BettongError):
    """The relay cannot do what it is asked for."""


class WireEndpoint:
    """A server behind a relay.

    Attributes:
        address: ``host:port`` that its client, or the proxy before it, is to use.
    """

    def __init__(self, recorder: WireRecorder, relay: Relay) -> None:
        self.name = relay.name
        self.address = relay.address
        self._recorder = recorder
        self._relay = relay

    @property
    def bytes(self) -> int:
        """Bytes that crossed in the present run; 0: the sink did not use the address."""
        return self._recorder.call(
            lambda: sum(
                sum(tunnel.size.values())
                for tunnel in self._recorder.run.tunnels
                if tunnel.endpoint == self.name
            )
        )

    def listener(self) -> WireListener:
        """A further address, for a proxy of its own."""
        return WireListener(self._recorder, self._recorder.call(self._relay.open_listener))

    def refuse_once(self) -> Armed:
        """Connections that are open are closed now, and the next one is closed as soon as it is
        made, before a byte has passed; the one after it works again."""
        refusal = ArmedRefusal(self.name)

        def arm() -> None:
            self._recorder.run.refusals.append(refusal)
            self._relay.close_tunnels()

        self._recorder.call(arm)
        return Armed(self._recorder, refusal)

    def left(self) -> bool:
        """Whether clients only asked here, in the present run, where to go next, and were sent
        elsewhere: they talk to a server of which nothing is seen."""

        def left() -> bool:
            tunnels = [t for t in self._recorder.run.tunnels if t.endpoint == self.name]
            reported = [t for t in tunnels if t.framing.recognised == "kafka"]
            asked = (r.info.role == "request" for t in reported for r in t.session.requests)
            return bool(reported) and not any(asked)

        return self._recorder.call(left)

    def bypassed(self, session: int | None = None) -> list[str]:
        """Processes, of a session if one is named, that are connected to the server, at this
        moment, past the relay: it has told them where to go next, or they have its address. See
        :func:`~bettong.harness.wire.bypass.direct_clients`."""
        return direct_clients(self._relay.upstream, session)


class WireListener:
    """A further address of an endpoint, for one proxy before it. Whoever comes in here is never
    sent elsewhere by a server that tells its clients where to go next (Kafka's brokers).

    Attributes:
        address: ``host:port`` of the proxy's upstream.
    """

    def __init__(self, recorder: WireRecorder, listener: Listener) -> None:
        self.address = listener.address
        self._recorder = recorder
        self._listener = listener

    def show(self, address: Address) -> None:
        """The server is to name this address, the proxy's, as its own."""
        self._listener.shown = address

    def close(self) -> None:
        """Nobody comes in here any more; who is in stays."""
        self._recorder.call(self._listener.close)


class Armed:
    """A cut or refusal in force, as :meth:`WireRecorder.arm` or :meth:`WireEndpoint.refuse_once`
    gives it. A context manager that heals it."""

    def __init__(self, recorder: WireRecorder, cut: ArmedCut | ArmedRefusal) -> None:
        self._recorder = recorder
        self._cut = cut

    def evidence(self) -> WireEvidence:
        """What it has done so far. Raises whatever its action raised."""
        return self._recorder.call(self._checked)

    def heal(self) -> WireEvidence:
        """End it, so that connections work again. Raises whatever its action raised."""
        self._recorder.call(self._cut.heal)
        return self.evidence()

    def _checked(self) -> WireEvidence:
        self._recorder.raise_failures()
        return self._cut.evidence()

    def __enter__(self) -> Armed:
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.call(self._cut.heal)


class WireRecorder:
    """Relays for any number of endpoints, on one thread. A context manager."""

    def __init__(self) -> None:
        self.run = WireRun()
        self._relays: dict[str, Relay] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire", daemon=True)
        self._thread.start()

    def call(self, act: Callable[[], T]) -> T:
        """Run ``act`` on the relays' thread."""

        async def on_loop() -> T:
            result = act()
            await asyncio.sleep(0)  # connections that were told to close are closed on return
            return result

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(_CALL_SECONDS)

    def endpoint(self, name: str, upstream: str, protocol: str | None = None) -> WireEndpoint:
        """Put a relay before the server at ``upstream`` (``host:port``).

        Raises UsageError for a name that is taken or a protocol that is not known."""
        if name in self._relays:
            raise UsageError(f"there is an endpoint {name!r} already")
        if protocol is not None:
            one_of(protocol, tuple(framings()), f"endpoint {name}: the protocol")
        Address.parse(upstream)
        relay = self.call(lambda: Relay(self._loop, self, name, upstream, protocol))
        self._relays[name] = relay
        return WireEndpoint(self, relay)

    def begin(self) -> None:
        """A new run: connections that are left over are closed, cuts are gone, counts are new."""

        def begin() -> None:
            self.run = WireRun()
            for relay in self._relays.values():
                relay.failures.clear()
                relay.close_tunnels()

        self.call(begin)

    def recording(self) -> Recording:
        """Everything that was said since :meth:`begin`."""
        return self.call(lambda: recorded(self.run))

    def clock(self) -> int:
        """The run's logical time: requests that are met from now on have a higher ``order``."""
        return self.run.tick()

    def met(self) -> int:
        """How many requests were met so far in the run, log-ins and polls among them."""
        return self.call(lambda: sum(len(t.session.requests) for t in self.run.tunnels))

    def arm(
        self,
        point: CutPoint,
        lasts: Lasts = "once",
        action: Callable[[], object] | None = None,
        close: bool = True,
        answer: bytes = b"",
    ) -> Armed:
        """Put a cut in force, for requests that are made from now on in the present run.

        Args:
            lasts: ``once``; ``retries``: when the same request is sent again, it meets the same
                fate.
            action: called at the point, in a thread, while the connection's flow is held: to pause
                or restart the server, kill the client, disable a proxy.
            close: whether the connection is closed at the point, after the action.
            answer: what its client is told instead of a reply, before the connection is closed.
        """
        one_of(point.endpoint, tuple(self._relays), f"{point.id}: endpoint")
        cut = ArmedCut(point, lasts, action, close, answer)
        self.call(lambda: self.run.cuts.append(cut))
        return Armed(self, cut)

    def raise_failures(self) -> None:
        """Raise what an action raised, once."""
        for relay in self._relays.values():
            if relay.failures:
                error = relay.failures.pop(0)
                raise WireError(
                    f"endpoint {relay.name}: the action of a cut failed: "
                    f"{type(error).__name__}: {error}"
                ) from error

    def close(self) -> None:
        def close() -> None:
            for relay in self._relays.values():
                relay.close()

        self.call(close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_SECONDS)
        self._loop.close()

    def __enter__(self) -> WireRecorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
