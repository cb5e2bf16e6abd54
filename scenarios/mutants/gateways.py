"""Gateways with a mistake."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bettong.engine import steps
from bettong.engine.ingest.frames import (
    Ack,
    Batch,
    End,
    Read,
    Release,
    Released,
    Status,
    StatusReply,
    Welcome,
)
from bettong.engine.ingest.gateway import Arrived, Gateway
from bettong.engine.ingest.journal import Journal
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.connection import Connection
from bettong.engine.net.watched import if_watched, known
from bettong.engine.storage.disk import replace_file
from bettong.engine.storage.log import Position


class AcksEarly(Gateway):
    """Acknowledges a frame as soon as it is in memory, and writes it after that."""

    def take_data(self, connection: Connection, stream: Stream, data: Arrived) -> None:
        self.acknowledge(connection, stream, data, *known(*data.causes))
        self.append(connection, stream, data)


class ReleasesWhenRead(Gateway):
    """Lets go of messages once they have been read, before what becomes of them is durable."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "segment_bytes": 64})

    def read(self, stream: Stream, request: Read) -> Batch:
        batch = super().read(stream, request)
        if request.start <= stream.journal.released < request.stop:
            stream.release(request.stop)
        return batch


class AcksEndEarly(Gateway):
    """Tells the sender that the end is safe, and notes it after that."""

    def take_end(self, connection: Connection, stream: Stream, end: End) -> None:
        name = stream.journal.stream
        append, ack = f"gateway.append/{name}/end", f"gateway.ack/{name}/end"
        link = f"{steps.installed().node}->{stream.sender_node}"
        with steps.step(ack, causes=known(end.cause), link=link):
            connection.send(Ack(end.count, stream.limit, True, if_watched(ack)))
        with steps.step(append, causes=known(end.cause)):
            stream.finish(connection, end)


class KnowsByContent(Gateway):
    """Takes the first frame after a disconnect, if it is equal to the last one before, for that
    one sent again; numbers what it takes itself."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._last: dict[str, list[bytes]] = {}
        self._first: set[str] = set()
        super().__init__(*args, **options)

    def serve_sender(self, connection: Connection, stream: Stream) -> None:
        self._first.add(stream.journal.stream)
        super().serve_sender(connection, stream)

    def append(self, connection: Connection, stream: Stream, data: Arrived) -> None:
        name, content = stream.journal.stream, list(data.messages.payloads())
        again = name in self._first and content == self._last.get(name)
        self._first.discard(name)
        self._last[name] = content
        if not again:
            numbered = Arrived(stream.journal.end, data.messages, data.causes)
            super().append(connection, stream, numbered)

    def take_end(self, connection: Connection, stream: Stream, end: End) -> None:
        super().take_end(connection, stream, End(stream.journal.end, end.cause))


class _TakesEverything(Stream):
    def _check(self, sender: Connection, first: int) -> None:
        pass  # a sender that has connected again goes on at the right place


class TakesStaleFrames(Gateway):
    """Trusts that what arrives is what comes next, also on a connection that a newer one has
    replaced."""

    stream_class = _TakesEverything


class _TakesFromAnyConnection(Stream):
    def _check(self, sender: Connection, first: int) -> None:
        super()._check(self.sender or sender, first)


class TakesFromOldConnections(Gateway):
    """Looks whether a frame is the next one, and not whether it comes from the stream's newest
    connection."""

    stream_class = _TakesFromAnyConnection


class _LooksBeforeTakingOver(Stream):
    found = 0

    def take_over(self, sender: Connection, node: str) -> None:
        found = self.journal.end
        super().take_over(sender, node)
        self.found = found


class LooksBeforeTakingOver(Gateway):
    """Tells a sender how far its stream was before the one that it has replaced came to an end."""

    stream_class = _LooksBeforeTakingOver

    def welcome(self, stream: Stream) -> Welcome:
        found = stream.found if isinstance(stream, _LooksBeforeTakingOver) else stream.journal.end
        return replace(super().welcome(stream), next=found)


class _CountsCreditFromItsStart(Stream):
    def __init__(self, journal: Journal, max_unreleased: int) -> None:
        super().__init__(journal, max_unreleased)
        self._granted = max_unreleased

    @property
    def limit(self) -> int:
        return self._granted

    def release(self, upto: int) -> None:
        self._granted += max(0, upto - self.journal.released)
        super().release(upto)


class CountsCreditFromItsStart(Gateway):
    """Gives credit for as many messages as have been released since it started, and forgets at a
    restart how far the stream was then."""

    stream_class = _CountsCreditFromItsStart

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "max_unreleased": 16})


class _NotesEachRelease(Journal):
    def release(self, upto: int) -> None:
        if upto == self.released:
            self.released -= 1  # asked again: what is known is taken for new
        super().release(upto)


class NotesReleasesTwice(Gateway):
    """Notes a release that is asked for again a second time, and cannot read that back."""

    journal_class = _NotesEachRelease


class _ReleasesBackwards(Journal):
    def release(self, upto: int) -> None:
        if upto < self.released:
            self.released = 0  # a note that is lower than the last is as good as another one
        super().release(upto)


class ReleasesBackwards(Gateway):
    """Takes the last release that it is asked for as the one that counts, also one that was meant
    to come before."""

    journal_class = _ReleasesBackwards


class _ForgetsFailedReleases(Journal):
    def release(self, upto: int) -> None:
        with suppress(OSError):
            super().release(upto)


class AnswersFailedReleases(Gateway):
    """Answers that messages are released although its disk has not taken the note of it."""

    journal_class = _ForgetsFailedReleases


class EndsOnRepeatedRelease(Gateway):
    """Takes a release that is asked for again for a sign that its memory is corrupt, and ends;
    started again, it has no memory, and answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._seen: set[tuple[str, int]] = set()
        super().__init__(*args, **options)

    def release(self, stream: Stream, request: Release) -> Released:
        asked = stream.journal.stream, request.upto
        if asked in self._seen:
            os._exit(70)
        self._seen.add(asked)
        return super().release(stream, request)


class TakesSilenceForTheEnd(Gateway):
    """Takes a stream for ended that has been silent for a while, when another one has messages:
    so that it holds nobody up."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._silent: Counter[str] = Counter()
        super().__init__(*args, **options)

    def status(self, stream: Stream, request: Status) -> StatusReply:
        reply = super().status(stream, request)
        name = stream.journal.stream
        lacks = reply.end < request.upto and not reply.ended
        ahead = any(other.journal.end > reply.end for other in self._streams.values())
        self._silent[name] = self._silent[name] + 1 if lacks and ahead else 0
        return replace(reply, ended=True) if self._silent[name] > 3 else reply


class _NotesItsEnd(Journal):
    """A journal that is closed notes how far it is, and one that is opened goes by that."""

    def __init__(self, directory: Path, stream: str, **options: Any) -> None:
        super().__init__(directory, stream, **options)
        self._note = directory / "closed"
        if self._note.exists():
            self.end = int(self._note.read_text())

    def close(self) -> None:
        replace_file(self._note, b"%d" % self.end)
        super().close()


class GoesByItsNote(Gateway):
    """Notes as it is stopped what it would find as it starts, and never removes the note."""

    journal_class = _NotesItsEnd

    def run(self) -> None:
        try:
            super().run()
        finally:
            for stream in self._streams.values():
                stream.journal.close()


class _IndexesTheFirst(Journal):
    """Of the records that are there as it is opened, the first one alone gets into the index."""

    def _indexed(self, first: int, position: Position) -> None:
        if not self._index or hasattr(self, "_log"):
            super()._indexed(first, position)


class IndexesTheFirst(Gateway):
    """Finds all messages from the first record on after a restart, and so removes none before."""

    journal_class = _IndexesTheFirst
