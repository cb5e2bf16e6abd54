"""The second form of a user's functions: over whole Arrow arrays instead of message by message.

Each marker stands for the one of the same name in :mod:`bettong.engine`, and steps of both forms
go together in one application. A function is given as many messages at a time as there happen to
be, in their order; its results must not depend on how many. When it fails, the query fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bettong.engine import functions
from bettong.engine.codecs.fields import fields_of
from bettong.engine.codecs.state import DataclassCodec
from bettong.engine.functions import Decoder, Function, State, StateFunction
from bettong.lineage.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Columns = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Fields of the entities of a state: row i of each column is the entity of code i."""


def decoder(function: Callable[[pa.BinaryArray], pa.Array]) -> Decoder:
    """bytes of messages → values."""
    return replace(functions.decoder(function), arrays=True)


def computation(function: Callable[[pa.Array], pa.Array]) -> Function:
    """messages → one message for each; null leaves a message out."""
    return replace(functions.computation(function), arrays=True)


def predicate(function: Callable[[pa.Array], pa.BooleanArray]) -> Function:
    """messages → which go on."""
    return replace(functions.predicate(function), arrays=True)


def key_extractor(function: Callable[[pa.Array], pa.Array]) -> Function:
    """messages → keys: text, bytes or whole numbers, no nulls."""
    return replace(functions.key_extractor(function), arrays=True)


def encoder(function: Callable[[pa.Array], pa.BinaryArray]) -> Function:
    """values → bytes of outputs."""
    return replace(functions.encoder(function), arrays=True)


def state_computation(
    *, state: type | State
) -> Callable[
    [Callable[[pa.Array, np.ndarray[Any, np.dtype[Any]], Columns], pa.Array | None]], StateFunction
]:
    """(messages, codes, columns) → one message for each; null, or None for all, gives no output.

    ``codes[i]`` is the row of message i's entity in each of the columns, which are changed in
    place. The state is a dataclass of numbers and truth values.

    Raises:
        UsageError: the state has fields that cannot be NumPy columns.
    """
    mark = functions.state_computation(state=state)

    def marked(function: Callable[..., Any]) -> StateFunction:
        made = mark(function)
        codec = made.state.codec
        plain = isinstance(codec, DataclassCodec) and all(
            f.python <= {int, float, bool} for f in fields_of(made.state.cls).values()
        )
        if not plain:
            raise UsageError(
                f"step {made.name}: a state computation over arrays needs a state that is a "
                "dataclass of int, float and bool fields that are never None, which "
                f"{made.state.name} is not"
            )
        return replace(made, arrays=True)

    return marked
