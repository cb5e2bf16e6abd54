"""The sender: hands messages to the gateway and keeps each until it is told that it is safe.

Run it with ``python -m bettong.engine.ingest.sender --gateway 127.0.0.1:4000 --stream lines
--input FILE``; each line of the file is a message.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.ingest.acked import AckedFile, NoteError
from bettong.engine.ingest.frames import (
    CODEC,
    Ack,
    Credit,
    Data,
    End,
    Hello,
    Ping,
    Welcome,
    append_step,
    message_id,
)
from bettong.engine.net.access import Key, add_key_options, key_from
from bettong.engine.net.block import Block
from bettong.engine.net.client import Patience, back_off, open_connection
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import STORAGE, ConnectionLostError, FrameError, RefusedError
from bettong.engine.net.names import check_name
from bettong.engine.net.watched import known
from bettong.engine.storage.disk import replace_file
from bettong.lineage.errors import BettongError, UsageError
from bettong.lineage.trace import MessageRange

log = logging.getLogger("bettong")
LOST = 1
"""Exit status: the gateway has lost what it had acknowledged."""
GAVE_UP = 3
"""Exit status: the gateway was out of reach for too long."""

_FRAME_BYTES = 16 << 20
_OVERHEAD = 1 << 10


class LossError(BettongError):
    """The gateway no longer has messages that it had said were safe."""


@dataclass(frozen=True)
class Pace:
    """How messages are put into frames.

    Attributes:
        frame: messages in a frame; frames begin at multiples of it, so that what is sent again
            is the same frame.
        window: frames that may wait for their acknowledgement at a time.
    """

    frame: int = 1
    window: int = 1


class Frame(NamedTuple):
    """Messages that are sent together."""

    first: int
    messages: Block

    @property
    def stop(self) -> int:
        """The number after the last message's."""
        return self.first + len(self.messages)


class Sender:
    """Sends one stream, from whichever message the gateway wants next, until all is safe.

    Args:
        messages: the whole stream from message 0 on, the same in any incarnation of the sender.
        acked: where to note what is safe; what it already says, earlier incarnations were told.
    """

    def __init__(
        self,
        address: Address,
        stream: str,
        messages: Iterable[bytes],
        acked: AckedFile,
        *,
        pace: Pace | None = None,
        key: Key | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._address = address
        self._stream = check_name("a stream", stream)
        self._messages = iter(messages)
        self._acked = acked
        self._pace = pace or Pace()
        self._key = key or Key()
        self._patience = patience or Patience()
        self._taken = 0  # messages taken from the input
        self._waiting: deque[Frame] = deque()  # sent on this connection, not acknowledged
        self._ready: deque[Frame] = deque()  # taken from the input, to be sent on this connection
        self._limit = 0
        self._freed_by = ""  # the step after which the next frame could be sent

    def run(self) -> int:
        """Send everything; returns how many messages the stream has when all are safe.

        Raises:
            LossError: the gateway has lost what it had acknowledged.
            UsageError: the stream at the gateway is not this input.
            RefusedError: the gateway refuses this sender.
            ConnectionLostError: no progress for ``patience.give_up_s`` seconds.
        """
        while True:
            known = self._acked.upto
            for _ in back_off(self._patience.give_up_s):
                try:
                    return self._converse()
                except ConnectionLostError as e:
                    lost: Exception = e
                except RefusedError as e:
                    if e.code != STORAGE:
                        raise
                    lost = e
                log.info("%s", lost)
                if self._acked.upto > known:
                    break  # progress earns new patience
            else:
                raise ConnectionLostError(
                    f"gave up after {self._patience.give_up_s:g} s without progress at "
                    f"{message_id(self._stream, known)}: {lost}"
                )

    def _converse(self) -> int:
        """All that is said on one connection."""
        connection, welcome = self._connect()
        with connection:
            self._resume(welcome)
            while frame := self._next_frame():
                while frame.stop > self._limit or len(self._waiting) >= self._pace.window:
                    self._listen(connection)
                self._send(connection, frame)
            while self._waiting:
                self._listen(connection)
            if not welcome.ended:
                self._end(connection)
            return self._taken

    def _connect(self) -> tuple[Connection, Welcome]:
        """A new connection, and what the gateway says first."""
        link = f"{steps.installed().node}->gateway"
        self._freed_by = f"sender.connect/{self._stream}"
        with steps.step(self._freed_by, link=link) as s:
            connection = open_connection(
                self._address, self._key, CODEC, self._patience.timeout_s, _FRAME_BYTES
            )
            try:
                hello = Hello(self._stream, "send", self._key.token, steps.installed().node)
                welcome = connection.request(hello, Welcome)
                s.caused_by(*known(welcome.step))
                return connection, welcome
            except BaseException:
                connection.close()
                raise

    def _resume(self, welcome: Welcome) -> None:
        """Go on where the gateway is."""
        name, at = self._stream, welcome.next
        if at < self._acked.upto or (self._acked.ended and not welcome.ended):
            raise LossError(
                f"the gateway has lost messages: it had acknowledged all up to "
                f"{message_id(name, self._acked.upto)}{' and the end' * self._acked.ended}, and "
                f"now wants {message_id(name, at)}"
            )
        self._limit = welcome.limit
        self._ready = self._waiting + self._ready
        self._waiting = deque()
        while self._ready and self._ready[0].stop <= at:
            self._forget(self._ready.popleft(), append_step(name, at - 1))
        skipped = sum(1 for _ in islice(self._messages, max(0, at - self._taken)))
        self._taken += skipped
        if self._taken < at:
            raise UsageError(
                f"the gateway has {at} messages of {name} already, the input only {self._taken}: "
                "it is another input, or the stream's name is in use"
            )
        if at > self._acked.upto:
            self._acked.note(at, False)
        if welcome.ended and (self._ready or next(self._messages, None) is not None):
            raise UsageError(f"stream {name} has ended with {at} messages, but the input goes on")
        if welcome.ended and not self._acked.ended:
            self._forget_end(f"gateway.append/{name}/end")

    def _next_frame(self) -> Frame | None:
        """The first frame to be sent; it stays ready until it is."""
        if self._ready:
            return self._ready[0]
        size = self._pace.frame - self._taken % self._pace.frame
        messages = Block.of(list(islice(self._messages, size)))
        if not len(messages):
            return None
        if len(messages.data) + 4 * len(messages) + _OVERHEAD > _FRAME_BYTES:
            last = message_id(self._stream, self._taken + len(messages) - 1)
            if len(messages) == 1:
                raise UsageError(
                    f"message {last} has {len(messages.data)} bytes, and a frame has room for "
                    f"{_FRAME_BYTES - _OVERHEAD}: send it in parts, or a reference to it"
                )
            raise UsageError(
                f"messages {message_id(self._stream, self._taken)} to {last} have "
                f"{len(messages.data)} bytes, too many for a frame: put fewer into one"
            )
        self._ready.append(Frame(self._taken, messages))
        self._taken += len(messages)
        return self._ready[0]

    def _send(self, connection: Connection, frame: Frame) -> None:
        step = f"sender.send/{message_id(self._stream, frame.stop - 1)}"
        self._waiting.append(self._ready.popleft())
        with steps.step(
            step,
            causes=[self._freed_by],
            carries=[MessageRange(self._stream, frame.first, frame.stop)],
            link=f"{steps.installed().node}->gateway",
        ):
            connection.send(Data(frame.first, frame.messages, step))

    def _listen(self, connection: Connection) -> None:
        """Take in one thing that the gateway says."""
        if not self._waiting and not connection.poll(self._patience.timeout_s / 2):
            connection.send(Ping())  # out of credit: is anybody there?
        reply = connection.receive_reply()
        if isinstance(reply, Ack):
            if not self._waiting or reply.upto > self._waiting[-1].stop:
                raise FrameError(
                    f"the gateway acknowledges {message_id(self._stream, reply.upto - 1)}, which "
                    "was not sent"
                )
            self._acked.note(reply.upto, reply.ended)
            while self._waiting and self._waiting[0].stop <= reply.upto:
                self._forget(self._waiting.popleft(), reply.step)
        if isinstance(reply, Ack | Credit):
            self._limit = max(self._limit, reply.limit)

    def _forget(self, frame: Frame, cause: str) -> None:
        self._freed_by = f"sender.forget/{message_id(self._stream, frame.stop - 1)}"
        with steps.step(
            self._freed_by,
            causes=[cause],
            carries=[MessageRange(self._stream, frame.first, frame.stop)],
        ):
            pass  # the caller has taken it from the queue; from here on nothing keeps it

    def _end(self, connection: Connection) -> None:
        step = f"sender.send/{self._stream}/end"
        link = f"{steps.installed().node}->gateway"
        with steps.step(step, causes=[self._freed_by], link=link):
            connection.send(End(self._taken, step))
        while not self._acked.ended:
            reply = connection.receive_reply()
            if isinstance(reply, Ack) and reply.ended:
                self._forget_end(reply.step)

    def _forget_end(self, cause: str) -> None:
        self._acked.note(self._taken, True)
        with steps.step(f"sender.forget/{self._stream}/end", causes=[cause]):
            pass


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, without their ends; ``-`` is standard input."""
    if str(path) == "-":
        yield from (line.removesuffix(b"\n") for line in sys.stdin.buffer)
        return
    with path.open("rb", buffering=1 << 20) as file:
        for line in file:
            yield line.removesuffix(b"\n")


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 all is safe, 1 the gateway has lost messages,
    2 set-up, 3 gave up."""
    parser = argparse.ArgumentParser(
        prog="python -m bettong.engine.ingest.sender", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--gateway", required=True, metavar="HOST:PORT")
    parser.add_argument("--stream", required=True)
    parser.add_argument("--input", type=Path, required=True, help="a file, or - for stdin")
    parser.add_argument("--frame", type=int, default=1, help="messages in a frame (default 1)")
    parser.add_argument("--window", type=int, default=1, help="frames not yet acknowledged")
    parser.add_argument("--timeout", type=float, default=Patience.timeout_s, metavar="SECONDS")
    parser.add_argument("--give-up", type=float, default=Patience.give_up_s, metavar="SECONDS")
    parser.add_argument("--acked", type=Path, metavar="FILE", help="note there what is safe")
    parser.add_argument("--outcome", type=Path, metavar="FILE", help="note there how it ended")
    add_key_options(parser)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="sender: %(message)s", force=True)
    steps.install(steps.Instrumentation.from_env())
    code, error, acked = 0, "", None
    try:
        if options.frame < 1 or options.window < 1:
            raise UsageError("--frame and --window are 1 or more")
        acked = AckedFile(options.acked, options.stream)
        Sender(
            Address.parse(options.gateway),
            options.stream,
            read_lines(options.input),
            acked,
            pace=Pace(options.frame, options.window),
            key=key_from(options),
            patience=Patience(options.timeout, options.give_up),
        ).run()
    except LossError as e:
        code, error = LOST, str(e)
    except (ConnectionLostError, NoteError, steps.RunOverError) as e:
        code, error = GAVE_UP, str(e)
    except (BettongError, OSError, ValueError) as e:
        code, error = 2, str(e)
    if error:
        log.error("%s", error)
    if options.outcome is not None:
        outcome = {"code": code, "error": error, "acked": acked.upto if acked else 0}
        try:
            replace_file(options.outcome, json.dumps(outcome).encode() + b"\n")
        except OSError as e:
            log.error("how it ended cannot be noted in %s: %s", options.outcome, e)
            code = code or GAVE_UP  # started again it is told once more that all is safe
    return code


if __name__ == "__main__":
    sys.exit(main())
