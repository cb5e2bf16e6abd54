"""One stream of a gateway: its journal, who may append to it, and who waits for it."""

from __future__ import annotations

import threading

from bettong.engine import steps
from bettong.engine.ingest.frames import NO_LIMIT, End, append_step, message_id
from bettong.engine.ingest.journal import Journal
from bettong.engine.net.block import Block
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import RefusedError
from bettong.lineage.trace import MessageRange


class Stream:
    """A journal, the one sender that may append to it, and who waits for it to grow.

    Attributes:
        sender: who may append.
        welcomed: the same once it has been told where the stream is, which is to come first; to be
            told of room for more.
    """

    def __init__(self, journal: Journal, max_unreleased: int) -> None:
        self.journal = journal
        self.sender: Connection | None = None
        self.welcomed: Connection | None = None
        self.sender_node = ""
        self.changed = threading.Condition()
        self._max_unreleased = max_unreleased

    @property
    def limit(self) -> int:
        """Messages below this number may be sent."""
        if not self._max_unreleased:
            return NO_LIMIT
        return self.journal.released + self._max_unreleased

    def take_over(self, sender: Connection, node: str) -> None:
        """Make this the stream's only sender; an older one's frames are refused from now on."""
        with self.changed:
            before, self.sender = self.sender, sender
            self.welcomed = None
            self.sender_node = node
        if before is not None:
            before.abort()

    def has_welcomed(self, sender: Connection) -> int:
        """Have this sender told of room from now on, if it is the stream's; gives the room there
        is, of which it may not have been told."""
        with self.changed:
            if self.sender is sender:
                self.welcomed = sender
        return self.limit

    def append(self, sender: Connection, first: int, messages: Block) -> None:
        """Append what came, if it is of the stream's sender and follows the last message."""
        with self.changed:
            self._check(sender, first)
            self.journal.append(messages)
            self.changed.notify_all()

    def finish(self, sender: Connection, end: End) -> None:
        """Note the end, if it comes from the stream's sender and follows the last message."""
        with self.changed:
            self._check(sender, end.count)
            self.journal.finish()
            self.changed.notify_all()

    def append_raw(self, messages: Block) -> None:
        """Append what came without a number, when there is room for it."""
        name = self.journal.stream
        with self.changed:
            self.changed.wait_for(lambda: self.journal.end < self.limit)
            first, stop = self.journal.end, self.journal.end + len(messages)
            with steps.step(append_step(name, stop - 1), carries=[MessageRange(name, first, stop)]):
                self.journal.append(messages)
            self.changed.notify_all()

    def release(self, upto: int) -> None:
        """Let go of the messages below a number; raises RefusedError beyond the end."""
        self.journal.release(upto)
        with self.changed:
            self.changed.notify_all()

    def _check(self, sender: Connection, first: int) -> None:
        if self.sender is not sender:
            raise RefusedError("fenced", f"another sender has taken {self.journal.stream} over")
        if first != self.journal.end:
            raise RefusedError(
                "gap", f"{message_id(self.journal.stream, self.journal.end)} is next, not {first}"
            )

    def wait_for(self, upto: int, seconds: float) -> None:
        """Wait until message ``upto - 1`` is there or never comes, but not longer."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.journal.end >= upto or self.journal.ended, min(seconds, 60.0)
            )
