"""Blocks: messages packed into bytes to be moved from one task of a batch to another.

Blocks travel in Spark's shuffle, between processes that send each other pickled functions
anyway: values that are not plain are pickled. Nothing of a block outlives its batch.

A block is the length of its header (4 bytes, big-endian), the header (JSON), an Arrow stream of
the messages' columns, one of their distinct keys and, where needed, one of pickled values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from bettong.engine.batch.items import IntArray, Items, KeyColumn
from bettong.engine.batch.values import PackedValues, pack_values, unpack_values

Ranges = tuple[tuple[str, int, int], ...]

DRIVER = -1
"""Where a task's report is addressed to."""


@dataclass(frozen=True)
class Header:
    """Where a block goes and comes from.

    Attributes:
        to: number of the step that its messages go to, or DRIVER.
        origin: id of the step of the trace that made it.
        carries: ranges of source messages that its messages come from.
    """

    to: int
    origin: str
    carries: Ranges = ()

    def to_json(self) -> dict[str, Any]:
        return {"to": self.to, "origin": self.origin, "carries": self.carries}


@dataclass(frozen=True)
class Block:
    """Messages on their way to a step, or what a task reports to the driver."""

    header: Header
    items: Items | None
    report: dict[str, Any]


def pack_report(header: Header, report: dict[str, Any]) -> bytes:
    """A block for the driver."""
    return _joined({**header.to_json(), "report": report}, b"")


def pack_by_partition(
    header: Header, items: Items, partitions: int, without_key: int
) -> Iterator[tuple[int, bytes]]:
    """Messages in one block for each state partition that owns keys of theirs, and messages for
    every key in a block for each.

    Args:
        header: of each block.
        items: the messages.
        partitions: number of state partitions.
        without_key: the partition to which messages without keys go.
    """
    packed = pack_values(items.values)
    for partition, places in _by_partition(items, partitions, without_key):
        yield partition, _pack(header, items, packed, places)


def split_by_partition(
    header: Header, items: Items, partitions: int, without_key: int
) -> Iterator[tuple[int, Block]]:
    """The same for tasks that share a process: nothing is packed."""
    for partition, places in _by_partition(items, partitions, without_key):
        part = items.take(places)
        yield partition, Block(header, replace(part, keys=part.keys and part.keys.used()), {})


def _by_partition(
    items: Items, partitions: int, without_key: int
) -> Iterator[tuple[int, IntArray]]:
    if items.keys is None:
        yield without_key, np.arange(len(items))
        return
    owners = items.keys.partitions(partitions)
    owner = owners[items.keys.codes]
    for_every_key = items.keys.for_every_key()
    wanted = np.unique(owners).tolist() if for_every_key is None else range(partitions)
    for partition in wanted:
        own = owner == partition
        places = np.flatnonzero(own if for_every_key is None else own | for_every_key)
        if len(places):
            yield partition, places


def _pack(header: Header, items: Items, packed: PackedValues, places: IntArray) -> bytes:
    columns = [pa.array(items.streams[places]), pa.array(items.numbers[places])]
    columns += [pa.array(column[places]) for column in items.paths.T]
    keys = items.keys and items.keys.take(places).used()
    if keys is not None:
        columns.append(pa.array(keys.codes.astype(np.int32)))
    at = pa.array(places)
    columns += [column.take(at) for column in packed.columns]
    out = pa.BufferOutputStream()
    _write(out, columns)
    if keys is not None:
        _write(out, [pa.array(keys.keys, pa.binary()), pa.array(keys.hashes)])
    pickled = packed.pickled(places)
    if pickled:
        _write(out, [pa.array(pickled, pa.large_binary())])
    layout = {"depth": items.paths.shape[1], "keyed": keys is not None, "values": packed.shape}
    return _joined(
        {**header.to_json(), **layout, "count": len(places)}, out.getvalue().to_pybytes()
    )


def _joined(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(4, "big") + text + body


def _write(out: Any, columns: list[pa.Array]) -> None:
    batch = pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)


def unpack(data: bytes | pa.Buffer) -> Block:
    """The block of its bytes."""
    view = memoryview(data)
    end = 4 + int.from_bytes(view[:4], "big")
    header = json.loads(bytes(view[4:end]))
    carries = tuple((s, a, b) for s, a, b in header["carries"])
    head = Header(header["to"], header["origin"], carries)
    if "report" in header:
        return Block(head, None, header["report"])
    return Block(head, _unpack_items(header, view[end:]), {})


def _unpack_items(header: dict[str, Any], body: memoryview) -> Items:
    reader = pa.BufferReader(pa.py_buffer(body))
    columns = iter(_read(reader))
    streams, numbers = next(columns).to_numpy(), next(columns).to_numpy()
    paths = np.empty((len(numbers), header["depth"]), np.int32)
    for place in range(header["depth"]):
        paths[:, place] = next(columns).to_numpy()
    keys = None
    if header["keyed"]:
        codes = next(columns).to_numpy()
        table, hashes = _read(reader)
        keys = KeyColumn(codes, table.to_pylist(), hashes.to_numpy())
    rest = list(columns)
    pickled = reader.tell() < reader.size()
    values = unpack_values(
        header["values"],
        header["count"],
        rest,
        cast(list[bytes], _read(reader)[0].to_pylist()) if pickled else [],
    )
    return Items(streams, numbers, paths, keys, values)


def _read(reader: Any) -> list[pa.Array]:
    """The columns of the one batch of a stream; leaves the reader after its end."""
    stream = pa.ipc.open_stream(reader)
    batch = stream.read_next_batch()
    for _ in stream:  # reads the end mark
        raise ValueError("a block's stream holds one batch")
    return cast(list[pa.Array], batch.columns)
