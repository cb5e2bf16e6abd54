"""The ingest gateway: keeps what senders send, and serves it to readers.

Run it with ``python -m bettong.engine.ingest.gateway --listen 127.0.0.1:4000 --dir DIR``.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bettong.engine import steps
from bettong.engine.ingest.client import READER_BYTES
from bettong.engine.ingest.frames import (
    CODEC,
    Ack,
    Batch,
    Credit,
    Data,
    End,
    Hello,
    Ping,
    Read,
    Release,
    Released,
    Status,
    StatusReply,
    Welcome,
    append_step,
    create_step,
    message_id,
)
from bettong.engine.ingest.journal import Journal
from bettong.engine.ingest.raw import FRAMINGS, RawListener, RawOption
from bettong.engine.ingest.stream import Stream
from bettong.engine.net.access import ListenConfig, listen_config_from
from bettong.engine.net.block import Block
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import ConnectionLostError, RefusedError
from bettong.engine.net.listener import Limits
from bettong.engine.net.names import check_name
from bettong.engine.net.process import (
    limits_from,
    load_class,
    lock_directory,
    natural,
    run_process,
    server_options,
)
from bettong.engine.net.server import Server
from bettong.engine.net.watched import if_watched, is_watched, known
from bettong.engine.storage.disk import OS_DISK
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.trace import MessageRange

_GATHER_BYTES = 1 << 20
MOST_FRAME_BYTES = READER_BYTES - (8 << 20)
"""What a frame may have at most: it has to fit into an answer, with others before it."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages that came from a sender: those of one frame, or of several without a gap.

    Attributes:
        causes: the steps in which the frames were sent, empty in production.
    """

    first: int
    messages: Block
    causes: tuple[str, ...]


class Gateway(Server):
    """One gateway process.

    Attributes:
        reply_bytes: how much one answer to a reader holds, or one message that is longer.

    Args:
        directory: where the journals are, one directory for each stream; this process' own.
        max_unreleased: messages of a stream that may wait to be released before its sender gets
            no more credit; 0: any number.

    Raises:
        UsageError: it cannot listen there, or the directory is in use.
        DamageError: a journal is damaged.
    """

    stream_class: type[Stream] = Stream
    journal_class: type[Journal] = Journal
    reply_bytes: ClassVar[int] = 4 << 20

    def __init__(
        self,
        access: ListenConfig,
        directory: Path,
        limits: Limits | None = None,
        *,
        max_unreleased: int = 0,
        segment_bytes: int = 64 << 20,
        max_streams: int = 1000,
    ) -> None:
        limits = limits or Limits()
        if limits.frame_bytes > MOST_FRAME_BYTES:
            raise UsageError(
                f"frames of {limits.frame_bytes} bytes could be kept and never be read: "
                f"{MOST_FRAME_BYTES} are the most that --max-frame-bytes may be"
            )
        self._owned = lock_directory(directory)
        self._directory = directory / "streams"
        OS_DISK.make_directory(self._directory)
        self._max_unreleased = max_unreleased
        self._segment_bytes = segment_bytes
        self._max_streams = max_streams
        self._streams: dict[str, Stream] = {}
        self._raw: set[str] = set()
        self._opening = threading.Lock()
        for path in sorted(self._directory.iterdir()):
            self._streams[path.name] = self._opened(path.name)
        super().__init__(access, CODEC, limits)

    def stream(self, name: str) -> Stream:
        """The stream of that name, made when it is new."""
        check_name("a stream", name)
        with self._opening:
            if name not in self._streams:
                if len(self._streams) >= self._max_streams:
                    raise RefusedError("streams", f"{len(self._streams)} streams are the most here")
                with steps.step(create_step(name)):
                    self._streams[name] = self._opened(name)
            return self._streams[name]

    def _opened(self, name: str) -> Stream:
        journal = self.journal_class(
            self._directory / name, name, segment_bytes=self._segment_bytes
        )
        return self.stream_class(journal, self._max_unreleased)

    def take_raw(self, option: RawOption) -> RawListener:
        """Begin to take plain TCP connections into a stream."""
        stream = self.stream(option.stream)
        listener = RawListener(self.access, option, self.limits, stream.append_raw)
        self._raw.add(option.stream)
        threading.Thread(target=listener.run, daemon=True).start()
        return listener

    def serve(self, connection: Connection) -> None:
        hello = connection.receive()
        if not isinstance(hello, Hello) or hello.role not in ("send", "read"):
            raise RefusedError("hello", "the first frame must be Hello, to send or to read")
        if not self.access.admits(hello.token):
            raise RefusedError("token", "the token is wrong or missing: give --token-file FILE")
        self.let_in(connection)
        stream = self.stream(hello.stream)
        if hello.role == "send" and hello.stream in self._raw:
            raise RefusedError("raw", f"{hello.stream} takes plain TCP; send to another stream")
        if hello.role == "send":
            stream.take_over(connection, hello.node)
            self.serve_sender(connection, stream)
        else:
            self.serve_reader(connection, stream)

    # --- senders

    def serve_sender(self, connection: Connection, stream: Stream) -> None:
        """Take what a sender sends."""
        journal = stream.journal
        welcome = self.welcome(stream)
        connection.send(welcome)
        if stream.has_welcomed(connection) > welcome.limit:
            connection.send(Credit(stream.limit))
        following: object = None
        while True:
            frame = following or connection.receive(self.limits.idle_s)
            following = None
            if isinstance(frame, Exception):
                raise frame
            if isinstance(frame, Data):
                arrived, following = self.gather(connection, frame)
                self.take_data(connection, stream, arrived)
            elif isinstance(frame, End):
                self.take_end(connection, stream, frame)
            elif isinstance(frame, Ping):
                connection.send(Credit(stream.limit))
            else:
                raise RefusedError(
                    "frame", f"a sender of {journal.stream} sent {type(frame).__name__}"
                )

    def gather(self, connection: Connection, data: Data) -> tuple[Arrived, object]:
        """A frame together with those that have come in behind it, so that they are synced
        together; and what came after those, a frame or an error, if anything did. A sender that
        waits for each frame's acknowledgement has one of them on the way: then there is nothing to
        be gathered."""
        blocks, stop = [data.messages], data.first + len(data.messages)
        causes = [data.cause]
        size = _size(data.messages)
        following: object = None
        while following is None and size < _GATHER_BYTES and self.has_more(connection, stop):
            try:
                following = connection.receive()
            except BettongError as e:
                following = e
            if isinstance(following, Data) and following.first == stop:
                blocks.append(following.messages)
                causes.append(following.cause)
                stop += len(following.messages)
                size += _size(following.messages)
                following = None
        return Arrived(data.first, Block.join(blocks), tuple(causes)), following

    def has_more(self, connection: Connection, stop: int) -> bool:
        """Whether anything has come in behind the messages below a number."""
        return connection.poll(0)

    def welcome(self, stream: Stream) -> Welcome:
        """What a client is told first."""
        journal = stream.journal
        end, created = journal.end, if_watched(create_step(journal.stream))
        step = self.append_step_of(stream, end) if end else created
        return Welcome(end, stream.limit, journal.ended, step)

    def take_data(self, connection: Connection, stream: Stream, data: Arrived) -> None:
        """Handle messages."""
        self.append(connection, stream, data)
        last = data.first + len(data.messages) - 1
        self.acknowledge(connection, stream, data, append_step(stream.journal.stream, last))

    def append(self, connection: Connection, stream: Stream, data: Arrived) -> None:
        """Make the messages durable."""
        name, last = stream.journal.stream, data.first + len(data.messages) - 1
        with steps.step(
            append_step(name, last),
            causes=known(*data.causes),
            carries=[MessageRange(name, data.first, last + 1)],
        ):
            stream.append(connection, data.first, data.messages)

    def acknowledge(
        self, connection: Connection, stream: Stream, data: Arrived, *causes: str
    ) -> None:
        """Tell the sender that the messages are safe, as the causes have made them."""
        name, upto = stream.journal.stream, data.first + len(data.messages)
        step = f"gateway.ack/{message_id(name, upto - 1)}"
        with steps.step(
            step,
            causes=causes,
            carries=[MessageRange(name, data.first, upto)],
            link=f"{steps.installed().node}->{stream.sender_node}",
        ):
            connection.send(Ack(upto, stream.limit, False, if_watched(step)))

    def take_end(self, connection: Connection, stream: Stream, end: End) -> None:
        """Handle the end of the stream: make it durable, then acknowledge it."""
        name = stream.journal.stream
        append, ack = f"gateway.append/{name}/end", f"gateway.ack/{name}/end"
        with steps.step(append, causes=known(end.cause)):
            stream.finish(connection, end)
        link = f"{steps.installed().node}->{stream.sender_node}"
        with steps.step(ack, causes=[append], link=link):
            connection.send(Ack(end.count, stream.limit, True, if_watched(ack)))

    # --- readers

    def serve_reader(self, connection: Connection, stream: Stream) -> None:
        """Answer a reader's requests."""
        connection.send(self.welcome(stream))
        while True:
            frame = connection.receive(self.limits.idle_s)
            if isinstance(frame, Status):
                connection.send(self.status(stream, frame))
            elif isinstance(frame, Read):
                connection.send(self.read(stream, frame))
            elif isinstance(frame, Release):
                connection.send(self.release(stream, frame))
            else:
                raise RefusedError(
                    "frame", f"a reader of {stream.journal.stream} sent {type(frame).__name__}"
                )

    def status(self, stream: Stream, request: Status) -> StatusReply:
        """How far the stream has come."""
        stream.wait_for(request.upto, request.wait_ms / 1000)
        journal = stream.journal
        ended = journal.ended  # before its length: to a stream that has ended nothing is added
        end = journal.end
        step = self.append_step_of(stream, min(request.upto, end))
        return StatusReply(journal.base, end, journal.released, ended, step)

    def read(self, stream: Stream, request: Read) -> Batch:
        """Messages from the start of the wanted range, as many as one frame should hold."""
        blocks: list[Block] = []
        steps_: list[str] = []
        size = 0
        for piece in stream.journal.read(request.start, request.stop):
            blocks.append(piece.messages)
            if is_watched():
                steps_.append(append_step(stream.journal.stream, piece.last))
            size += _size(piece.messages)
            if size >= self.reply_bytes:
                break
        return Batch(request.start, Block.join(blocks), tuple(steps_))

    def release(self, stream: Stream, request: Release) -> Released:
        """Let go of the messages below a number, and let the sender send more."""
        name = stream.journal.stream
        if not request.upto:
            return Released(0, "")
        step = f"gateway.release/{message_id(name, request.upto - 1)}"
        with steps.step(step, causes=known(request.cause)):
            stream.release(request.upto)
        sender = stream.welcomed
        if self._max_unreleased and sender is not None:
            with contextlib.suppress(ConnectionLostError):  # its own thread notices too
                sender.send(Credit(stream.limit))
        return Released(request.upto, if_watched(step))

    def append_step_of(self, stream: Stream, upto: int) -> str:
        """The step that has made message ``upto - 1`` durable, where steps are watched."""
        journal = stream.journal
        if not is_watched() or not journal.base < upto <= journal.end:
            return ""
        (piece,) = journal.read(upto - 1, upto)
        return append_step(journal.stream, piece.last)


def _size(messages: Block) -> int:
    """Their bytes in a frame: many empty ones take room too."""
    return len(messages.data) + 4 * len(messages)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    about = (__doc__ or "").split("\n")[0]
    parser = server_options("bettong.engine.ingest.gateway", about, Gateway)
    parser.add_argument(
        "--max-unreleased",
        type=natural,
        default=0,
        metavar="N",
        help="messages of a stream that may wait before its sender must (default: any number)",
    )
    parser.add_argument(
        "--raw",
        action="append",
        default=[],
        metavar="STREAM=HOST:PORT[,FRAMING]",
        help=f"take plain TCP into a stream; FRAMING: {', '.join(FRAMINGS)} (default: lines)",
    )
    options = parser.parse_args(arguments)

    def start() -> Server:
        steps.install(steps.Instrumentation.from_env())
        raw = [RawOption.parse(text) for text in options.raw]
        with steps.step("gateway.start"):
            gateway = load_class(options.class_path, Gateway)(
                listen_config_from(options),
                options.dir,
                limits_from(options),
                max_unreleased=options.max_unreleased,
                segment_bytes=options.segment_bytes,
            )
        for option in raw:
            gateway.take_raw(option)
        return gateway

    return run_process("gateway", start)


if __name__ == "__main__":
    from bettong.engine.ingest.gateway import main as imported  # not a second copy of the classes

    sys.exit(imported())
