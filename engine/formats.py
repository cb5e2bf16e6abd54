"""Decoders and encoders for JSON.

Values are checked against the declared type when they are read: a field that is missing or of
another type is an error of the decoder, for which the application's error policy holds. Nothing
but the declared type is ever made.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec

from bettong.engine.functions import Decoder, Function, decoder, encoder
from bettong.lineage.errors import UsageError


def json_decoder(kind: Any = Any) -> Decoder:
    """JSON → a value of the type.

    Args:
        kind: a dataclass, a ``TypedDict``, a ``NamedTuple`` (from an array), or any of
            ``list[…]``, ``dict[…, …]``, ``… | None`` of these and plain types; ``Any`` takes what
            comes. Fields of an object that the type does not have are left out.

    Raises:
        UsageError: there is no JSON of such a type.
    """
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, RuntimeError) as e:
        raise UsageError(f"json_decoder: {kind!r} cannot be read from JSON: {e}") from e

    @decoder
    def from_json(data: bytes) -> Any:
        return msgspec.json.decode(data, type=kind)

    return from_json


def json_encoder() -> Function:
    """A value → JSON: dataclasses, also inside others, as objects with their fields in the order of
    their declaration."""

    @encoder
    def to_json(value: Any) -> bytes:
        return _ENCODER.encode(value).encode()

    return to_json


def _fields(value: Any) -> dict[str, Any]:
    # by attribute: what msgspec has left at its default is not in the object's own dict
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    raise TypeError(f"there is no JSON for {type(value).__name__}")


_ENCODER = json.JSONEncoder(
    default=_fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")
)
