"""What a user writes: plain functions, marked with what they do in a pipeline.

A marked function stays callable as it was, so that it is tested like any other function.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, overload

from bettong.engine.codecs.state import StateCodec, codec_for
from bettong.engine.crdt import is_mergeable
from bettong.lineage.errors import UsageError

Consistency = Literal["per-key", "available"]

Kind = Literal[
    "computation",
    "computation_multi",
    "filter",
    "key_extractor",
    "state_computation",
    "state_computation_multi",
    "decoder",
    "encoder",
]


@dataclass(frozen=True, eq=False)
class Function:
    """A user's function with its kind; calling it calls the function.

    Attributes:
        kind: what the function does in a pipeline.
        name: name of the step that it becomes, by default its own.
        call: the function.
        arrays: whether it is given whole Arrow arrays, as those of :mod:`bettong.engine.arrays`.
    """

    kind: Kind
    name: str
    call: Callable[..., Any]
    arrays: bool = field(default=False, kw_only=True)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


@dataclass(frozen=True, eq=False)
class State:
    """A kind of state entity: one object of ``cls`` for each key, made by ``cls()`` on demand.

    Steps that name the same state share its entities.

    Attributes:
        consistency: ``per-key``: each message of a key meets what the one before has left.
            ``available``: each site takes messages by itself, and states are merged.
        forget: is asked of an entity that has met a message for every key: whether it is to be
            removed. The key's next message meets a new one.
    """

    name: str
    cls: type
    codec: StateCodec
    consistency: Consistency = "per-key"
    forget: Callable[[Any], bool] | None = None


@dataclass(frozen=True, eq=False)
class StateFunction(Function):
    """A function of (message, entity) that may change the entity in place.

    Attributes:
        ticks: whether it knows what to do with a :class:`bettong.engine.ticks.Tick`.
    """

    state: State
    ticks: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class Decoder(Function):
    """Bytes of one message → value.

    ``header_length`` and ``length_fmt`` say how messages are framed in a plain byte stream: a
    header of that many bytes whose ``struct`` format gives the length of the payload.
    """

    header_length: int = 4
    length_fmt: str = ">I"


def _marker(kind: Kind) -> Callable[[Callable[..., Any]], Function]:
    def mark(function: Callable[..., Any]) -> Function:
        return Function(kind, _name_of(function, kind), _callable(function, kind))

    mark.__name__ = kind
    return mark


def _callable(function: object, kind: str) -> Callable[..., Any]:
    if not callable(function):
        raise UsageError(f"@{kind} marks a function, got {function!r}")
    if isinstance(function, Function):
        raise UsageError(f"{function.name} is marked twice: as {function.kind} and as {kind}")
    return function


def _name_of(function: object, kind: str) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return kind if name == "<lambda>" else str(name)


def computation(function: Callable[[Any], Any]) -> Function:
    """message → one message; None leaves the message out."""
    return _marker("computation")(function)


def computation_multi(function: Callable[[Any], Iterable[Any]]) -> Function:
    """message → any number of messages."""
    return _marker("computation_multi")(function)


def predicate(function: Callable[[Any], bool]) -> Function:
    """message → whether it goes on."""
    return _marker("filter")(function)


def key_extractor(function: Callable[[Any], str | bytes | int]) -> Function:
    """message → key: ``str``, ``bytes`` or ``int``."""
    return _marker("key_extractor")(function)


def encoder(function: Callable[[Any], bytes]) -> Function:
    """value → bytes of one output."""
    return _marker("encoder")(function)


@overload
def decoder(function: Callable[[bytes], Any], /) -> Decoder: ...
@overload
def decoder(
    *, header_length: int = 4, length_fmt: str = ">I"
) -> Callable[[Callable[[bytes], Any]], Decoder]: ...
def decoder(
    function: Callable[[bytes], Any] | None = None,
    /,
    *,
    header_length: int = 4,
    length_fmt: str = ">I",
) -> Decoder | Callable[[Callable[[bytes], Any]], Decoder]:
    """bytes of one message → value; with or without arguments that describe the framing."""
    try:
        size = struct.calcsize(length_fmt)
    except struct.error as e:
        raise UsageError(f"decoder: length_fmt {length_fmt!r} is no struct format: {e}") from e
    if size != header_length:
        raise UsageError(
            f"decoder: length_fmt {length_fmt!r} takes {size} bytes, header_length is "
            f"{header_length}"
        )

    def mark(f: Callable[[bytes], Any]) -> Decoder:
        return Decoder(
            "decoder", _name_of(f, "decoder"), _callable(f, "decoder"), header_length, length_fmt
        )

    return mark if function is None else mark(function)


def state_entity(
    cls: type,
    *,
    name: str | None = None,
    codec: StateCodec | None = None,
    consistency: Consistency = "per-key",
    forget: Callable[[Any], bool] | None = None,
) -> State:
    """Declare a kind of state entity.

    Args:
        cls: called without arguments to make the entity of a new key.
        name: steps that name the same state share its entities; the class's name by default.
        codec: how entities are written; by default from the fields of a dataclass.
        consistency: ``available`` for entities that can be merged, such as those of
            :mod:`bettong.engine.crdt`; see :class:`bettong.engine.events.engine.EventEngine`.
        forget: entity → whether it is to be removed; asked when the entity has met a message for
            every key (:meth:`bettong.engine.Stream.every_key`).

    Raises:
        UsageError: the class cannot be made without arguments, or needs a codec of its own.
    """
    if not isinstance(cls, type):
        raise UsageError(f"state= takes a class, got {cls!r}")
    if consistency not in get_args(Consistency):
        raise UsageError(f"consistency is per-key or available, got {consistency!r}")
    if consistency == "available" and not is_mergeable(cls):
        raise UsageError(f"state {cls.__name__} cannot be available: it has no method merge(other)")
    return State(name or cls.__name__, cls, codec or codec_for(cls), consistency, forget)


def _state_marker(
    kind: Literal["state_computation", "state_computation_multi"], of: type | State
) -> Callable[[Callable[[Any, Any], Any]], StateFunction]:
    declared = of if isinstance(of, State) else state_entity(of)

    def mark(function: Callable[[Any, Any], Any]) -> StateFunction:
        return StateFunction(kind, _name_of(function, kind), _callable(function, kind), declared)

    return mark


def takes_ticks(function: StateFunction) -> StateFunction:
    """The same, said to know what to do with a tick."""
    return replace(function, ticks=True)


def state_computation(
    *, state: type | State
) -> Callable[[Callable[[Any, Any], Any]], StateFunction]:
    """(message, entity) → one message; None gives no output. A message that is the entity itself,
    or holds a part of it that changes, tells of later messages of the same batch: give a copy."""
    return _state_marker("state_computation", state)


def state_computation_multi(
    *, state: type | State
) -> Callable[[Callable[[Any, Any], Iterable[Any]]], StateFunction]:
    """(message, entity) → any number of messages."""
    return _state_marker("state_computation_multi", state)
