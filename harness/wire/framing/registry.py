"""The protocols whose requests can be distinguished: those that ship, and those of installed
packages, which name a :class:`~bettong.harness.wire.framing.base.Framing` in the entry point group
``bettong.framings``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata

from bettong.harness.wire.framing.amqp import AmqpFraming
from bettong.harness.wire.framing.base import Framing
from bettong.harness.wire.framing.http1 import Http1Framing
from bettong.harness.wire.framing.kafka import KafkaFraming
from bettong.harness.wire.framing.mysql import MySQLFraming
from bettong.harness.wire.framing.nats import NatsFraming
from bettong.harness.wire.framing.opaque import OpaqueFraming
from bettong.harness.wire.framing.postgres import PostgresFraming
from bettong.harness.wire.framing.resp import RespFraming
from bettong.lineage.errors import BettongError

GROUP = "bettong.framings"

_SHIPPED: tuple[type[Framing], ...] = (
    AmqpFraming,
    Http1Framing,
    RespFraming,
    PostgresFraming,
    KafkaFraming,
    NatsFraming,
    MySQLFraming,
    OpaqueFraming,
)


class FramingKindError(BettongError):
    """An installed framing that cannot be used."""


@cache
def framings() -> Mapping[str, type[Framing]]:
    """All by the name of their protocol, in the order in which a connection is tried; raises
    FramingKindError."""
    found = {framing.protocol: framing for framing in _SHIPPED}
    for point in metadata.entry_points(group=GROUP):
        try:
            framing = point.load()
        except Exception as e:
            raise FramingKindError(f"the framing {point.name} ({point.value}) fails: {e}") from e
        if not (isinstance(framing, type) and issubclass(framing, Framing)):
            raise FramingKindError(f"{point.value} is no framing: derive it from Framing")
        if found.setdefault(framing.protocol, framing) is not framing:
            raise FramingKindError(f"two framings are for the protocol {framing.protocol!r}")
    return found


def recognised_by_client(data: bytes) -> type[Framing]:
    """The framing of which a client's first bytes are, an opaque one if none."""
    fitting = (framing for framing in framings().values() if framing.recognises_client(data))
    return next(fitting, OpaqueFraming)


def recognised_by_server(data: bytes) -> type[Framing]:
    """The framing of a server that speaks first."""
    fitting = (framing for framing in framings().values() if framing.recognises_server(data))
    return next(fitting, OpaqueFraming)
