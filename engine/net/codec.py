"""Messages as frozen dataclasses, and their bytes.

Each field's type says how it is written: ``int`` u64; ``bool`` u8; ``str`` and ``bytes`` with a
u32 length before; ``tuple[str, ...]`` and ``dict[int, int]`` with a u32 count before; a Block with
a u32 length before. Whatever comes from the network is checked here; nothing of it is executed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, get_type_hints

from bettong.engine.net.block import Block
from bettong.engine.net.errors import FrameError
from bettong.engine.net.frame import Buffer

_U8 = struct.Struct("<B")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """The last frame before a connection is closed: why. Part of every protocol."""

    KIND: ClassVar[int] = 255
    code: str
    text: str


class Codec:
    """The messages of one protocol: dataclasses with a class variable KIND, 1 to 254."""

    def __init__(self, *types: Any) -> None:
        self._layouts = {t.KIND: (t, _layout(t)) for t in (*types, ErrorReply)}
        if len(self._layouts) != len(types) + 1:
            raise ValueError("two messages of one protocol have the same KIND")

    def encode(self, message: Any) -> list[Buffer]:
        """The body of the message's frame; raises ValueError for a value that does not fit."""
        _, layout = self._layouts[message.KIND]
        parts: list[Buffer] = []
        try:
            for name, (write, _) in layout.items():
                write(parts, getattr(message, name))
        except (struct.error, UnicodeEncodeError) as e:
            raise ValueError(f"{type(message).__name__}.{name} cannot be sent: {e}") from e
        return parts

    def decode(self, kind: int, body: Buffer) -> Any:
        """The message of a frame; raises FrameError when there is none in it."""
        if kind not in self._layouts:
            raise FrameError(f"frames of kind {kind} are unknown")
        message, layout = self._layouts[kind]
        cursor = _Cursor(body)
        try:
            values = [read(cursor) for _, read in layout.values()]
        except (struct.error, UnicodeDecodeError) as e:
            raise FrameError(f"a frame {message.__name__} is malformed: {e}") from e
        if cursor.position != len(cursor.view):
            raise FrameError(f"a frame {message.__name__} has bytes left over")
        return message(*values)


class _Cursor:
    def __init__(self, body: Buffer) -> None:
        self.view = memoryview(body)
        self.position = 0

    def number(self, form: struct.Struct) -> int:
        (value,) = form.unpack_from(self.view, self.position)
        self.position += form.size
        return int(value)

    def counted(self) -> memoryview:
        length = self.number(_U32)
        part = self.view[self.position : self.position + length]
        if len(part) != length:
            raise FrameError("a field is cut short")
        self.position += length
        return part


_Write = Callable[[list[Buffer], Any], None]
_Read = Callable[[_Cursor], Any]


def _write_counted(parts: list[Buffer], value: Buffer) -> None:
    parts += (_U32.pack(len(value)), value)


def _write_strings(parts: list[Buffer], value: tuple[str, ...]) -> None:
    parts.append(_U32.pack(len(value)))
    for text in value:
        _write_counted(parts, text.encode())


def _write_map(parts: list[Buffer], value: dict[int, int]) -> None:
    parts.append(_U32.pack(len(value)))
    for key, item in value.items():
        parts += (_U64.pack(key), _U64.pack(item))


def _read_map(cursor: _Cursor) -> dict[int, int]:
    count = cursor.number(_U32)
    pairs = [(cursor.number(_U64), cursor.number(_U64)) for _ in range(count)]
    if len(dict(pairs)) != count:
        raise FrameError("a map names a key twice")
    return dict(pairs)


def _write_block(parts: list[Buffer], value: Block) -> None:
    buffers = value.buffers()
    parts += (_U32.pack(sum(map(len, buffers))), *buffers)


_CODECS: dict[Any, tuple[_Write, _Read]] = {
    int: (lambda p, v: p.append(_U64.pack(v)), lambda c: c.number(_U64)),
    bool: (lambda p, v: p.append(_U8.pack(v)), lambda c: bool(c.number(_U8))),
    str: (lambda p, v: _write_counted(p, v.encode()), lambda c: str(c.counted(), "utf-8")),
    bytes: (_write_counted, lambda c: bytes(c.counted())),
    tuple[str, ...]: (
        _write_strings,
        lambda c: tuple(str(c.counted(), "utf-8") for _ in range(c.number(_U32))),
    ),
    dict[int, int]: (_write_map, _read_map),
    Block: (_write_block, lambda c: Block.parse(c.counted())),
}


def _layout(message: type[Any]) -> dict[str, tuple[_Write, _Read]]:
    hints = get_type_hints(message)
    return {field.name: _CODECS[hints[field.name]] for field in fields(message)}
