"""A block: many byte strings, laid out as Arrow lays out a binary column.

The same bytes go over the wire, into the journal and into an Arrow array, so that nobody has to
touch single messages on the way: ``count u32 | offsets (count + 1) u32 | data``, little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bettong.engine.net.errors import FrameError
from bettong.engine.net.frame import Buffer

if TYPE_CHECKING:
    import pyarrow as pa

_COUNT = struct.Struct("<I")
_MAX_DATA = 2**31 - 1  # Arrow's 32-bit offsets are signed


class Block:
    """An immutable sequence of byte strings.

    Attributes:
        offsets: little-endian u32 array of ``len(block) + 1`` positions in ``data``, from 0.
        data: the byte strings one after the other.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, offsets: npt.NDArray[Any], data: Buffer) -> None:
        self.offsets = offsets
        self.data = data

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Block:
        """The block of these byte strings; raises ValueError beyond 2 GiB."""
        data = b"".join(payloads)
        if len(data) > _MAX_DATA:
            raise ValueError(f"a block holds {_MAX_DATA} bytes at most, not {len(data)}")
        ends = accumulate(map(len, payloads), initial=0)
        return cls(np.fromiter(ends, "<u4", len(payloads) + 1), data)

    @classmethod
    def of_arrow(cls, array: pa.Array) -> Block:
        """The block of an Arrow array of text or bytes; copies no data where that is laid out
        alike."""
        import pyarrow as pa

        if not len(array) or array.null_count or array.type not in (pa.string(), pa.binary()):
            return cls.of(array.to_pylist())
        _, ends, data = array.buffers()
        offsets = np.frombuffer(ends, "<i4", len(array) + 1, 4 * array.offset)
        first, last = int(offsets[0]), int(offsets[-1])
        held = memoryview(data)[first:last] if data is not None else b""
        return cls((offsets - first).astype("<u4"), held)

    @classmethod
    def parse(cls, body: Buffer) -> Block:
        """The block in these bytes, all of them; raises FrameError when they are none."""
        view = memoryview(body)
        count = cls.count(view)
        start = _COUNT.size + 4 * (count + 1)
        if len(view) < start:
            raise FrameError(f"a block of {count} messages is cut short")
        offsets = np.frombuffer(view, "<u4", count + 1, _COUNT.size)
        data = view[start:]
        if (
            offsets[0] != 0
            or offsets[-1] != len(data)
            or len(data) > _MAX_DATA
            or bool((offsets[1:] < offsets[:-1]).any())
        ):
            raise FrameError(f"the offsets of a block of {count} messages are wrong")
        return cls(offsets, data)

    @staticmethod
    def count(body: Buffer) -> int:
        """How many messages the block in these bytes has, without looking at them; raises
        FrameError when there is none."""
        if len(body) < _COUNT.size:
            raise FrameError("a block is cut short")
        return int(_COUNT.unpack_from(body)[0])

    @classmethod
    def join(cls, blocks: Iterable[Block]) -> Block:
        """All messages of the blocks in their order."""
        blocks = list(blocks)
        if len(blocks) == 1:
            return blocks[0]
        lengths = [np.diff(block.offsets) for block in blocks]
        offsets = np.zeros(sum(map(len, lengths)) + 1, "<u4")
        if lengths:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        return cls(offsets, b"".join(block.data for block in blocks))

    def buffers(self) -> tuple[Buffer, ...]:
        """The block's bytes, in parts."""
        return _COUNT.pack(len(self)), self.offsets.tobytes(), self.data

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.payloads() == other.payloads()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Block({len(self)} messages, {len(self.data)} bytes)"

    def slice(self, start: int, stop: int) -> Block:
        """Messages ``start`` up to but not including ``stop``."""
        if (start, stop) == (0, len(self)):
            return self
        offsets = self.offsets[start : stop + 1]
        first = int(offsets[0])
        return Block(offsets - offsets[0], memoryview(self.data)[first : int(offsets[-1])])

    def payloads(self) -> list[bytes]:
        """The byte strings, one by one."""
        data = bytes(self.data)
        ends = self.offsets.tolist()
        return [data[a:b] for a, b in pairwise(ends)]

    def to_arrow(self) -> pa.BinaryArray:
        """The same as an Arrow array of type ``binary``; copies nothing."""
        import pyarrow as pa  # only where Arrow is wanted: it is slow to import

        offsets = pa.py_buffer(np.ascontiguousarray(self.offsets))
        return pa.BinaryArray.from_buffers(
            pa.binary(), len(self), [None, offsets, pa.py_buffer(self.data)]
        )
