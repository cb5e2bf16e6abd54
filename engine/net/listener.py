"""Accepts connections, one thread for each, and lets no stranger take what others need."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass

from bettong.engine.address import Address
from bettong.engine.net.access import ListenConfig
from bettong.engine.steps import RunOverError

log = logging.getLogger("bettong")


@dataclass(frozen=True)
class Limits:
    """What one client may take.

    Attributes:
        connections: open at once, over all clients.
        strangers: of these, from one address, without having been admitted.
        frame_bytes: the body of one frame.
        frame_s: seconds from a frame's first byte to its last; also for TLS and the first frame.
        idle_s: seconds without any frame.
    """

    connections: int = 256
    strangers: int = 64
    frame_bytes: int = 16 << 20
    frame_s: float = 10.0
    idle_s: float = 300.0


class Listener:
    """Listens at an address and runs :meth:`speak` for each connection in a thread of its own.

    Where all connections are in use, or too many come from one address without being admitted, one
    that has not been admitted makes room: the oldest, of that address where it has too many.
    """

    def __init__(self, access: ListenConfig, limits: Limits) -> None:
        self.access = access
        self.limits = limits
        self._tls = access.tls()
        self._listener = access.listen()
        self._lock = threading.Lock()
        self._open = 0
        self._strangers: dict[threading.Thread, socket.socket] = {}  # oldest first
        self._hosts: dict[threading.Thread, str] = {}  # of the strangers
        self._is_closed = False
        host, port, *_ = self._listener.getsockname()
        self.address = Address(host, port)

    def speak(self, sock: socket.socket, peer: str) -> None:
        """Serve one client until it is done; the socket is closed afterwards."""
        raise NotImplementedError

    def admit(self) -> None:
        """The client of this thread has shown that it may come in."""
        with self._lock:
            self._leave(threading.current_thread())

    def run(self) -> None:
        """Accept until :meth:`close` is called."""
        while True:
            try:
                sock, peer = self._listener.accept()
            except OSError as e:
                if self._is_closed:
                    return
                log.error("accepting a connection failed: %s", e)
                time.sleep(0.1)  # out of file descriptors, most likely
                continue
            self._begin(sock, str(Address(*peer[:2])))

    def close(self) -> None:
        """Stop accepting; connections that are open go on."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _begin(self, sock: socket.socket, peer: str) -> None:
        thread = threading.Thread(target=self._handle, args=(sock, peer), daemon=True)
        with self._lock:
            if self._open >= self.limits.connections:
                log.warning("%s: too many connections", peer)
                if not self._strangers:
                    sock.close()
                    return
                self._turn_away(next(iter(self._strangers)))
            host = peer.rpartition(":")[0]
            alike = [t for t, other in self._hosts.items() if other == host]
            if len(alike) >= self.limits.strangers:
                log.warning("%s: too many connections that say nothing", peer)
                self._turn_away(alike[0])
            self._open += 1
            self._strangers[thread] = sock
            self._hosts[thread] = host
        try:
            thread.start()
        except RuntimeError as e:  # the machine has no room for another thread
            log.error("%s: %s", peer, e)
            sock.close()
            self._forget(thread)

    def _handle(self, sock: socket.socket, peer: str) -> None:
        try:
            sock.settimeout(self.limits.frame_s)
            if self._tls is not None:
                sock = self._secured(self._tls, sock)
            self.speak(sock, peer)
        except RunOverError as e:
            log.error("%s", e)
            os._exit(3)  # the run is over for every thread of this process
        except OSError as e:
            log.warning("%s: %s", peer, e)
        except Exception:
            log.exception("%s: connection closed by a defect", peer)
        finally:
            sock.close()
            self._forget(threading.current_thread())

    def _forget(self, thread: threading.Thread) -> None:
        with self._lock:
            self._open -= 1
            self._leave(thread)

    def _leave(self, thread: threading.Thread) -> None:
        self._strangers.pop(thread, None)
        self._hosts.pop(thread, None)

    def _turn_away(self, thread: threading.Thread) -> None:
        stranger = self._strangers[thread]
        self._leave(thread)
        with contextlib.suppress(OSError):
            stranger.shutdown(socket.SHUT_RDWR)

    def _secured(self, tls: ssl.SSLContext, sock: socket.socket) -> socket.socket:
        secured = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            if threading.current_thread() in self._strangers:
                self._strangers[threading.current_thread()] = secured
        try:
            secured.do_handshake()
        except OSError:
            secured.close()  # the plain socket that it was made from closes nothing
            raise
        return secured
