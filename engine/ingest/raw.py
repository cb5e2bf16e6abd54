"""Plain TCP into the gateway: for programs that cannot speak its protocol.

Messages are lines, or bytes after a big-endian length. Nothing is acknowledged: what was on its way
when either side died is lost, and what the program then sends again is taken again. From the
journal on, each message counts once.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from bettong.engine.address import Address
from bettong.engine.net.access import ListenConfig
from bettong.engine.net.block import Block
from bettong.engine.net.errors import FrameError
from bettong.engine.net.listener import Limits, Listener
from bettong.engine.net.names import check_name
from bettong.lineage.errors import BettongError, UsageError

log = logging.getLogger("bettong")
_CHUNK = 1 << 18
_OPTION = re.compile(r"(?P<stream>[^=]*)=(?P<address>[^,]*)(,(?P<framing>.*))?")
#: Bytes of the length before each message; 0: messages are lines.
FRAMINGS = {"lines": 0, "u8": 1, "u16": 2, "u32": 4, "u64": 8}


class Splitter:
    """Cuts what comes in into messages.

    Args:
        width: a value of FRAMINGS.
        limit: the most bytes of one message.
    """

    def __init__(self, width: int, limit: int) -> None:
        self._width = width
        self._limit = limit
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now; raises FrameError for one over the limit. If others
        came whole before it they are given, and the next call raises."""
        data = self._rest + data
        too_long = False
        if not self._width:
            *messages, self._rest = data.split(b"\n")
            if max(map(len, messages), default=0) > self._limit:
                lines = messages
                messages = list(takewhile(lambda line: len(line) <= self._limit, lines))
                self._rest = lines[len(messages)]
            too_long = len(self._rest) > self._limit
        else:
            messages, start = [], 0
            while (body := start + self._width) <= len(data) and not too_long:
                length = int.from_bytes(data[start:body], "big")
                too_long = length > self._limit
                if body + length > len(data):
                    break
                messages.append(data[body : body + length])
                start = body + length
            self._rest = data[start:]
        if too_long and not messages:
            raise FrameError(f"a message is over the limit of {self._limit} bytes")
        return messages

    def finish(self) -> list[bytes]:
        """What is left at the end: a last line without its end. Raises FrameError for a message
        that is cut short."""
        rest, self._rest = self._rest, b""
        if rest and self._width:
            raise FrameError("the last message is cut short")
        return [rest] if rest else []


class RawOption(NamedTuple):
    """``STREAM=HOST:PORT[,FRAMING]``."""

    stream: str
    address: Address
    width: int

    @classmethod
    def parse(cls, text: str) -> RawOption:
        """Raises UsageError."""
        match = _OPTION.fullmatch(text)
        framing = (match and match["framing"]) or "lines"
        if match is None or framing not in FRAMINGS:
            raise UsageError(
                f"--raw {text}: write STREAM=HOST:PORT or STREAM=HOST:PORT,FRAMING; FRAMING is "
                f"one of {', '.join(FRAMINGS)}"
            )
        name = check_name("a stream", match["stream"])
        return cls(name, Address.parse(match["address"]), FRAMINGS[framing])


class RawListener(Listener):
    """Takes plain TCP connections and hands on their messages, some at a time.

    Args:
        access: the gateway's own; its TLS holds here too. A token cannot be said in plain TCP, so
            beyond loopback it takes client certificates.
        take: called with the messages of one connection in their order; may block, and then the
            connection's sender has to wait.
    """

    def __init__(
        self, access: ListenConfig, option: RawOption, limits: Limits, take: Callable[[Block], None]
    ) -> None:
        super().__init__(replace(access, address=option.address, token=""), limits)
        self._option = option
        self._take = take

    def speak(self, sock: socket.socket, peer: str) -> None:
        self.admit()
        sock.settimeout(self.limits.idle_s)
        splitter = Splitter(self._option.width, self.limits.frame_bytes)
        try:
            while data := sock.recv(_CHUNK):
                while messages := splitter.feed(data):
                    self._take(Block.of(messages))
                    data = b""  # was a message behind them too long?
            if messages := splitter.finish():
                self._take(Block.of(messages))
        except (BettongError, TimeoutError) as e:
            log.warning("%s: %s, sending to %s", peer, e, self._option.stream)
