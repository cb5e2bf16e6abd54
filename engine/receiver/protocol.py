"""The receiver's protocol: what drivers and executors say, and what it answers.

A client's first frame is :class:`Hello`; then it asks :class:`Open`, :class:`Prepare` and
:class:`Commit`, one at a time. All of them may be asked again. Every error is
an ErrorReply, after which the receiver closes. ``cause`` and ``step`` as in
:mod:`bettong.engine.ingest.frames`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bettong.engine.net.block import Block
from bettong.engine.net.codec import Codec


def create_step(application: str) -> str:
    """The receiver's step that makes the ledger of a new application."""
    return f"receiver.create/{application}"


def open_step(epoch: int) -> str:
    """The receiver's step that begins an epoch."""
    return f"receiver.open/epoch={epoch}"


def prepare_step(batch: int, partition: int, attempt: int, part: int | None = None) -> str:
    """The receiver's step that stages what an attempt has made, or that stages a part of it which
    is not the last."""
    whole = f"receiver.prepare/batch={batch}/p={partition}/a={attempt}"
    return whole if part is None else f"{whole}/part={part}"


def at_sink(step: str, cause: str) -> str:
    """The receiver's step for a request: where an application has several sinks, the request's
    own step ends in the name of one, and so does this."""
    sink = cause.partition("/sink.")[2].partition("/")[2]
    return f"{step}/{sink}" if sink else step


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame: for which application."""

    KIND: ClassVar[int] = 1
    application: str
    token: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to Hello: the application's newest epoch so far."""

    KIND: ClassVar[int] = 2
    epoch: int


@dataclass(frozen=True, slots=True)
class Open:
    """From now on only this epoch and newer ones may change anything. ``following`` is the first
    batch that the driver's state does not have, so that the receiver must not have it either."""

    KIND: ClassVar[int] = 3
    epoch: int
    following: int
    cause: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The epoch is durable."""

    KIND: ClassVar[int] = 4
    step: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Stage rows of one attempt at one partition: part ``part`` of them, counted from 0, the
    last one if ``last``. ``keyed`` has one byte for each row, 0 where the row has no key."""

    KIND: ClassVar[int] = 5
    epoch: int
    batch: int
    partition: int
    attempt: int
    part: int
    last: bool
    ids: Block
    keys: Block
    keyed: bytes
    data: Block
    cause: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """The part is durable, or (``recorded``) the batch has been committed already."""

    KIND: ClassVar[int] = 6
    recorded: bool
    step: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Make visible what the winning attempts have prepared: ``{partition: attempt}``."""

    KIND: ClassVar[int] = 7
    epoch: int
    batch: int
    winners: dict[int, int]
    cause: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is durable and visible; ``recorded``: it was so before."""

    KIND: ClassVar[int] = 8
    recorded: bool
    step: str


CODEC = Codec(Hello, Welcome, Open, Opened, Prepare, Prepared, Commit, Committed)
