"""What a sink must offer so that its outputs are effectively-once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from bettong.engine.keys import Key
from bettong.lineage.trace import MessageRange


class Row(NamedTuple):
    """One output: its deterministic id, its key (None without one) and its bytes."""

    id: str
    key: Key | None
    data: bytes


class Noted(NamedTuple):
    """The step of the trace that a request to a sink is: the sink's client takes it, once for
    each attempt, so that a request which is sent again is seen as such.

    Attributes:
        step: its id; empty when nothing is traced.
        causes: ids of the steps whose effects the request carries.
        carries: the messages that its rows come from.
    """

    step: str
    causes: Iterable[str] = ()
    carries: Iterable[MessageRange] = ()


class TwoPhaseSink(Protocol):
    """Outputs are staged by tasks and made visible by the driver, batch by batch.

    Objects are sent to workers, so they can be pickled and connect when they are used.
    Each method may be called again with the same arguments after a failure.
    """

    def open(self, application: str, epoch: int, noted: Noted) -> None:
        """Begin an epoch: from now on every older epoch of the application is refused."""
        ...

    def prepare(
        self,
        epoch: int,
        batch: int,
        partition: int,
        attempt: int,
        rows: Sequence[Row],
        noted: Noted,
    ) -> None:
        """Stage the rows of one task attempt; nobody sees them yet."""
        ...

    def commit(self, epoch: int, batch: int, winners: Mapping[int, int], noted: Noted) -> None:
        """Make the rows of the winning attempts (partition → attempt) visible, all or none, in
        the order of their partitions, and remember the batch; a batch that is remembered
        already changes nothing.

        Raises:
            FencedError: a newer epoch has been opened.
        """
        ...
