"""Rows, on the wire and in the visible output."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

from bettong.engine.net.block import Block
from bettong.engine.net.errors import RefusedError

_PART_BYTES = 4 << 20


class Row(NamedTuple):
    """One output.

    Attributes:
        id: derived from the input's, such as ``lines/17.2``.
        key: whose order counts; None without one.
        data: what the encoder made.
    """

    id: str
    key: str | None
    data: bytes


class Columns(NamedTuple):
    """Rows as they travel; see Prepare."""

    ids: Block
    keys: Block
    keyed: bytes
    data: Block


def columns(rows: Sequence[Row]) -> Columns:
    """The rows, column by column."""
    return Columns(
        Block.of([row.id.encode() for row in rows]),
        Block.of([(row.key or "").encode() for row in rows]),
        bytes(row.key is not None for row in rows),
        Block.of([row.data for row in rows]),
    )


def parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows cut into parts that fit into a frame; at least one part."""
    start = size = 0
    for place, row in enumerate(rows):
        size += len(row.data) + 4 * len(row.id) + 4 * len(row.key or "") + 16
        if size > _PART_BYTES and place > start:
            yield rows[start:place]
            start, size = place, 0
    yield rows[start:]


def lines(batch: int, found: Columns) -> bytes:
    """What becomes visible: one JSON object a line, ``{"id", "key", "data", "batch"}``, with
    ``"base64"`` instead of ``"data"`` where the bytes are not UTF-8.

    Raises RefusedError when the columns do not fit together.
    """
    if not len(found.ids) == len(found.keys) == len(found.keyed) == len(found.data):
        raise RefusedError("frame", "the columns of rows differ in length")
    end = f',"batch":{batch}}}\n'
    try:
        return "".join(
            f'{{"id":{quote(str(id_, "utf-8"))},'
            f'"key":{quote(str(key, "utf-8")) if keyed else "null"},{_data(data)}{end}'
            for id_, key, keyed, data in zip(
                found.ids.payloads(),
                found.keys.payloads(),
                found.keyed,
                found.data.payloads(),
                strict=True,
            )
        ).encode()
    except UnicodeDecodeError as e:
        raise RefusedError("frame", f"an id or key is not UTF-8: {e}") from e


def _data(data: bytes) -> str:
    try:
        return f'"data":{quote(str(data, "utf-8"))}'
    except UnicodeDecodeError:
        return f'"base64":"{base64.b64encode(data).decode()}"'
