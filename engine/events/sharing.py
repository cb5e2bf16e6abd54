"""What sites of one application tell each other of their available states."""

from __future__ import annotations

import json
import struct
import zlib

import pyarrow as pa

from bettong.engine.events.steps import Compiled
from bettong.engine.functions import State
from bettong.engine.graph import Application
from bettong.engine.keys import canonical, parse
from bettong.lineage.errors import BettongError, UsageError

_CHECKSUM = struct.Struct("<I")


class SharedError(BettongError):
    """Bytes that are not what a site of this application shares."""


def available_states(app: Application) -> list[State]:
    """The states that sites share.

    Raises:
        UsageError: other states are there too, which one site alone could not know.
    """
    available = [s for s in app.states if s.consistency == "available"]
    for state in app.states:
        if available and state not in available:
            raise UsageError(
                f"application {app.name} has the available state {available[0].name} and the state "
                f"{state.name}, whose order by key no site can keep alone: make both available"
            )
    return available


def pack(compiled: Compiled, states: list[State]) -> bytes:
    """All entities of the states."""
    out = pa.BufferOutputStream()
    for state in states:
        entities = compiled.entities[state.name]
        keys = pa.array([canonical(key) for key in entities], pa.binary())
        column = state.codec.encode(list(entities.values()))
        about = {"bettong.state": json.dumps([state.name, state.codec.version])}
        schema = pa.schema([("key", pa.binary()), ("entity", column.type)], metadata=about)
        with pa.ipc.new_stream(out, schema) as writer:
            writer.write_batch(pa.record_batch([keys, column], schema=schema))
    data: bytes = out.getvalue().to_pybytes()
    return data + _CHECKSUM.pack(zlib.crc32(data))


def absorb(compiled: Compiled, states: list[State], data: bytes) -> None:
    """Merge what another site has packed.

    Raises:
        SharedError: it is of another application, or damaged; then nothing is merged.
    """
    content, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    if _CHECKSUM.pack(zlib.crc32(content)) != checksum:  # Arrow believes what it reads
        raise SharedError(
            "this is damaged, or not what a site of the application shares: its checksum is "
            "wrong; let the site share again"
        )
    reader = pa.BufferReader(content)
    arrived = []
    try:
        for state in states:
            stream = pa.ipc.open_stream(reader)
            name, version = json.loads(stream.schema.metadata[b"bettong.state"])
            if name != state.name:
                raise ValueError(f"state {name} where {state.name} is expected")
            (batch,) = list(stream)
            keys = [parse(key) for key in batch.column("key").to_pylist()]
            arrived.append((state, keys, state.codec.decode(batch.column("entity"), version)))
    except (BettongError, pa.ArrowException, KeyError, TypeError, ValueError, OSError) as e:
        raise SharedError(f"this is not what a site of the application shares: {e}") from e
    for state, keys, others in arrived:
        entities = compiled.entities[state.name]
        for key, other in zip(keys, others, strict=True):
            if key in entities:
                entities[key].merge(other)
            else:
                entities[key] = other
            compiled.touched[state.name].add(key)
