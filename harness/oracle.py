"""The oracle: what should be visible, worked out by the sequential interpreter from what the
gateway accepted and what the sender was told is safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bettong.engine import Application
from bettong.engine.interpreter import interpret
from bettong.engine.keys import Key
from bettong.harness.checkers import Record


def expected_outputs(
    application: Application, stream: str, messages: Sequence[bytes]
) -> list[Record]:
    """Every output, once, in the order in which a reader should see those of a key.

    Raises UserFunctionError when a function of the application fails on a message.
    """
    found = interpret(application, {stream: messages})
    return [Record(o.id, _key(o.key), o.data.decode("utf-8", "replace")) for o in found.outputs]


def seen_outputs(rows: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The rows that a reader of the receiver's output sees, in their order."""
    return [
        Record(row.get("id"), row.get("key"), row.get("data", row.get("base64")), row.get("batch"))
        for row in rows
    ]


def _key(key: Key | None) -> str | None:
    return key if key is None or isinstance(key, str) else str(key)
