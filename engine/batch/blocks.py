"""Blocks: messages packed into bytes to be moved from one task of a batch to another.

Blocks travel in Spark's shuffle, between processes that send each other pickled functions
anyway: values that are not plain are pickled. Nothing of a block outlives its batch.

A block is the length of its header (4 bytes, big-endian), the header (JSON), and an Arrow stream
of the messages' columns, followed by one of their distinct keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from bettong.engine.batch.items import Items, KeyColumn

_PLAIN: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    bytes: pa.binary(),
}
_WIDEST_TUPLE = 16


@dataclass(frozen=True)
class Block:
    """Messages on their way to a step.

    Attributes:
        to: number of the step; -1 for a report of a task that goes to the driver.
        origin: id of the step of the trace that made it.
        items: the messages, or None in a report.
        report: what the task has to say.
        carries: ranges of source messages that the block's messages come from.
    """

    to: int
    origin: str
    items: Items | None = None
    report: dict[str, Any] = field(default_factory=dict)
    carries: tuple[tuple[str, int, int], ...] = ()


def pack(block: Block) -> bytes:
    """The bytes of a block."""
    header: dict[str, Any] = {"to": block.to, "origin": block.origin, "carries": block.carries}
    body = b""
    if block.items is None:
        header["report"] = block.report
    else:
        body = _pack_items(block.items, header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(4, "big") + text + body


def destination(data: bytes) -> int:
    """Number of the step that a packed block goes to."""
    return int(_header(data)[0]["to"])


def unpack(data: bytes) -> Block:
    """The block of its bytes."""
    header, body = _header(data)
    carries = tuple((s, a, b) for s, a, b in header["carries"])
    if "report" in header:
        return Block(header["to"], header["origin"], None, header["report"], carries)
    return Block(header["to"], header["origin"], _unpack_items(header, body), {}, carries)


def _header(data: bytes) -> tuple[dict[str, Any], memoryview]:
    view = memoryview(data)
    end = 4 + int.from_bytes(view[:4], "big")
    return json.loads(bytes(view[4:end])), view[end:]


def _pack_items(items: Items, header: dict[str, Any]) -> bytes:
    columns = [pa.array(items.streams), pa.array(items.numbers)]
    columns += [pa.array(np.ascontiguousarray(c)) for c in items.paths.T]
    header["depth"] = items.paths.shape[1]
    if items.keys is not None:
        columns.append(pa.array(items.keys.codes.astype(np.int32)))
    header["keyed"] = items.keys is not None
    pickled: list[bytes] = []
    header["values"] = _pack_values(items.values, columns, pickled)
    out = pa.BufferOutputStream()
    _write(out, columns)
    if items.keys is not None:
        _write(out, [pa.array(items.keys.keys, pa.binary()), pa.array(items.keys.hashes)])
    if pickled:
        _write(out, [pa.array(pickled, pa.large_binary())])
    return cast(bytes, out.getvalue().to_pybytes())


def _write(out: Any, columns: Sequence[pa.Array]) -> None:
    batch = pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)


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
    pickled = iter(_read(reader)[0].to_pylist()) if _any_pickled(header["values"]) else iter(())
    return Items(streams, numbers, paths, keys, _unpack_values(header["values"], columns, pickled))


def _read(reader: Any) -> list[pa.Array]:
    """The columns of the one batch of a stream; leaves the reader after its end."""
    stream = pa.ipc.open_stream(reader)
    batch = stream.read_next_batch()
    for _ in stream:  # reads the end mark
        raise ValueError("a block's stream holds one batch")
    return cast(list[pa.Array], batch.columns)


def _pack_values(values: Sequence[Any], columns: list[pa.Array], pickled: list[bytes]) -> Any:
    """Put values into columns; what is given back says how to get them out again."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind in _PLAIN:
        try:
            columns.append(pa.array(values, _PLAIN[kind]))
            return "plain"
        except (OverflowError, UnicodeError, pa.ArrowException):
            pass  # a number beyond 64 bits, text that is no Unicode
    if kind is tuple:
        widths = set(map(len, values))
        if len(widths) == 1 and 0 < max(widths) <= _WIDEST_TUPLE:
            parts = zip(*values, strict=True)
            return [_pack_values(part, columns, pickled) for part in parts]
    if kinds or kind is not type(None):
        pickled.append(_pickle(list(values)))
        return "pickle"
    return len(values)


def _unpack_values(shape: Any, columns: Iterator[pa.Array], pickled: Iterator[bytes]) -> list[Any]:
    if shape == "plain":
        return cast(list[Any], next(columns).to_pylist())
    if shape == "pickle":
        return _unpickle(next(pickled))
    if isinstance(shape, int):
        return [None] * shape
    return list(zip(*(_unpack_values(s, columns, pickled) for s in shape), strict=True))


def _any_pickled(shape: Any) -> bool:
    return shape == "pickle" or (isinstance(shape, list) and any(map(_any_pickled, shape)))


def _pickle(values: list[Any]) -> bytes:
    from pyspark import cloudpickle  # also packs classes of modules that workers do not have

    return cast(bytes, cloudpickle.dumps(values, 5))  # type: ignore[no-untyped-call]


def _unpickle(data: bytes) -> list[Any]:
    from pyspark import cloudpickle

    return cast(list[Any], cloudpickle.loads(data))


def by_partition(items: Items, partitions: int, place: int) -> Iterable[tuple[int, Items]]:
    """Messages by the state partition that owns their key; without keys all go to ``place``."""
    if items.keys is None:
        return [(place, items)]
    from_hash = np.array([int(h) * partitions >> 64 for h in items.keys.hashes], np.int64)
    owner = from_hash[items.keys.codes]
    present = np.unique(owner)
    if len(present) == 1:
        return [(int(present[0]), items)]
    parts = ((int(p), items.take(np.flatnonzero(owner == p))) for p in present)
    return [(p, _with_used_keys(part)) for p, part in parts]


def _with_used_keys(items: Items) -> Items:
    assert items.keys is not None
    return Items(items.streams, items.numbers, items.paths, items.keys.used(), items.values)
