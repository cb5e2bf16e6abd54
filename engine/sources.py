"""What a source must offer, and sources that need no server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bettong.engine.steps import step
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import MessageRange

if TYPE_CHECKING:
    import pyarrow as pa


class Extent(NamedTuple):
    """How far a stream has come.

    Attributes:
        end: messages below this number can be read, now and after any crash.
        ended: there will be no more.
    """

    end: int
    ended: bool


class StreamSource(Protocol):
    """A stream of messages that are numbered from 0 and can be read again.

    Objects are sent to workers, so they can be pickled and connect when they are used.
    """

    def extent(self, upto: int, wait: float) -> Extent:
        """How far the stream has come; waits up to ``wait`` seconds until message ``upto - 1`` is
        there or the stream has ended."""
        ...

    def read(
        self, planned: MessageRange, step: str, causes: Sequence[str]
    ) -> Sequence[bytes] | pa.Array:
        """The messages of a range, all of them, as bytes or as a binary array; takes the named
        step of the trace, once for each attempt."""
        ...

    def plan(self, planned: MessageRange, step: str) -> None:
        """Take the named step: these messages will be the stream's part of a batch."""
        ...

    def release(self, upto: int, step: str, causes: Iterable[str]) -> None:
        """Messages below ``upto`` will not be read again; takes the named step."""
        ...


@dataclass(frozen=True)
class FileSource:
    """The lines of a text file, without their ends; the stream has ended at the file's end."""

    path: Path

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(len(self._lines()), True)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> Sequence[bytes]:
        with step(step_id, causes=causes, carries=[planned]):
            return self._lines()[planned.start : planned.stop]

    def plan(self, planned: MessageRange, step_id: str) -> None:
        with step(step_id, carries=[planned]):
            pass

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        pass

    def _lines(self) -> list[bytes]:
        try:
            return self.path.read_bytes().splitlines()
        except OSError as e:
            raise UsageError(f"source file {self.path} cannot be read: {e.strerror}") from e


@dataclass(frozen=True)
class ArrowSource:
    """The binary column ``message`` of an Arrow IPC file, memory-mapped; the stream has ended at
    the file's end."""

    path: Path

    def extent(self, upto: int, wait: float) -> Extent:
        return Extent(len(self._messages()), True)

    def read(self, planned: MessageRange, step_id: str, causes: Sequence[str]) -> pa.Array:
        with step(step_id, causes=causes, carries=[planned]):
            part = self._messages().slice(planned.start, planned.stop - planned.start)
            return part.combine_chunks()

    def plan(self, planned: MessageRange, step_id: str) -> None:
        with step(step_id, carries=[planned]):
            pass

    def release(self, upto: int, step_id: str, causes: Iterable[str]) -> None:
        pass

    def _messages(self) -> pa.ChunkedArray:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(pa.memory_map(str(self.path))).read_all().column("message")
        except (OSError, pa.ArrowException, KeyError) as e:
            raise UsageError(f"source file {self.path} cannot be read: {e}") from e
