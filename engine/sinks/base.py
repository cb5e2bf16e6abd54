"""What a sink must offer so that its outputs are effectively-once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol, overload

from bettong.engine.keys import Key, key_text, parse
from bettong.lineage.trace import MessageRange

if TYPE_CHECKING:
    import pyarrow as pa

    from bettong.engine.batch.items import KeyColumn


class Row(NamedTuple):
    """One output: its deterministic id, its key (None without one) and its bytes."""

    id: str
    key: Key | None
    data: bytes


class Rows(Sequence[Row]):
    """Outputs in columns, for sinks that can take them so; read as rows by all others.

    Attributes:
        ids: Arrow array of text.
        data: the outputs' bytes, a list or an Arrow array.
    """

    def __init__(self, ids: pa.Array, keys: KeyColumn | None, data: list[bytes] | pa.Array) -> None:
        self.ids = ids
        self.data = data
        self._keys = keys

    def canonical_keys(self) -> pa.Array:
        """Binary array of the keys' canonical bytes; null where there is none."""
        import pyarrow as pa

        if self._keys is None:
            return pa.nulls(len(self), pa.binary())
        return pa.array(self._keys.keys, pa.binary()).take(pa.array(self._keys.codes))

    def key_texts(self) -> list[str] | None:
        """For each output its key as readers see it; None without keys."""
        if self._keys is None:
            return None
        texts = [str(key_text(parse(key))) for key in self._keys.keys]
        return list(map(texts.__getitem__, self._keys.codes.tolist()))

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Row]:
        data = self.data if isinstance(self.data, list) else self.data.to_pylist()
        keys = self._keys.values() if self._keys is not None else repeat(None)
        return map(Row, self.ids.to_pylist(), keys, data)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        return list(self)[place]


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

    def open(self, application: str, epoch: int, noted: Noted, newest: int | None = None) -> None:
        """Begin an epoch: from now on every older epoch of the application is refused.

        Args:
            newest: the newest batch that the application's checkpoint knows of, -1 without any;
                None when there is none to compare with.

        Raises:
            FencedError: a newer epoch has been opened.
            AheadError: the sink has a batch after ``newest``.
        """
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
