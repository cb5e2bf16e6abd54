"""Rows, on the wire and in the visible output."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring_ascii as quote
from typing import NamedTuple

import numpy as np

from bettong.engine.net.block import Block
from bettong.engine.net.errors import RefusedError
from bettong.engine.net.frame import Buffer

PART_BYTES = 4 << 20
_MANY = 500
_PLAIN = bytes(set(range(0x20, 0x80)) - set(b'"\\'))


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
    """Rows column by column, as they travel; see Prepare. Each column has one entry a row."""

    ids: Block
    keys: Block
    keyed: bytes
    data: Block

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Columns:
        """The columns of these rows."""
        return cls(
            Block.of([row.id.encode() for row in rows]),
            Block.of([(row.key or "").encode() for row in rows]),
            bytes(row.key is not None for row in rows),
            Block.of([row.data for row in rows]),
        )

    def parts(self, part_bytes: int = PART_BYTES) -> Iterator[Columns]:
        """The same rows in as many parts of about so many bytes as hold them; at least one."""
        count = len(self.keyed)
        sizes = 16 * np.arange(count + 1)
        for block in (self.ids, self.keys, self.data):
            sizes += block.offsets
        start = 0
        while start < count or not start:
            stop = int(np.searchsorted(sizes, sizes[start] + part_bytes, "right")) - 1
            stop = min(max(stop, start + 1), count)
            yield Columns(
                self.ids.slice(start, stop),
                self.keys.slice(start, stop),
                self.keyed[start:stop],
                self.data.slice(start, stop),
            )
            if stop == count:
                return
            start = stop


def lines(batch: int, found: Columns) -> Buffer:
    """What becomes visible: one JSON object a line, ``{"id", "key", "data", "batch"}``, with
    ``"base64"`` instead of ``"data"`` where the bytes are not UTF-8.

    Raises RefusedError when the columns do not fit together.
    """
    ids, keys, keyed, data = found
    if not len(ids) == len(keys) == len(keyed) == len(data):
        raise RefusedError("frame", "the columns of rows differ in length")
    if (
        len(ids) >= _MANY
        and len(set(keyed)) == 1
        and not any(bytes(block.data).translate(None, _PLAIN) for block in (ids, keys, data))
    ):
        return _plain_lines(batch, found)
    end = f',"batch":{batch}}}\n'
    try:
        return "".join(
            f'{{"id":{quote(str(id_, "utf-8"))},'
            f'"key":{quote(str(key, "utf-8")) if has_key else "null"},{_data(each)}{end}'
            for id_, key, has_key, each in zip(
                ids.payloads(), keys.payloads(), keyed, data.payloads(), strict=True
            )
        ).encode()
    except UnicodeDecodeError as e:
        raise RefusedError("frame", f"an id or key is not UTF-8: {e}") from e


def _plain_lines(batch: int, found: Columns) -> Buffer:
    """The same where no character needs quoting and all rows, or none, have a key."""
    import pyarrow.compute as pc  # slow to import, and fast from there on

    parts: list[object] = [b'{"id":"', found.ids.to_arrow()]
    if found.keyed[0]:
        parts += [b'","key":"', found.keys.to_arrow(), b'","data":"']
    else:
        parts += [b'","key":null,"data":"']
    parts += [found.data.to_arrow(), b'","batch":%d}\n' % batch]
    joined = pc.binary_join_element_wise(*parts, b"")
    return memoryview(joined.buffers()[2])


def _data(data: bytes) -> str:
    try:
        return f'"data":{quote(str(data, "utf-8"))}'
    except UnicodeDecodeError:
        return f'"base64":"{base64.b64encode(data).decode()}"'
