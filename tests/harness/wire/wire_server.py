"""A server that speaks just enough RESP, and a client for it."""

from __future__ import annotations

import socket
import threading

from wire_samples import command

from bettong.harness.wire.framing.resp import RespFraming


class Counting:
    """Notes every command that it carries out, in order, and answers with how many there were."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        host, port = self.listener.getsockname()
        self.address = f"{host}:{port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        framing = RespFraming()
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                for part in framing.client(data):
                    if part.request is not None:
                        with self.lock:
                            self.done.append(part.request.detail)
                            answer = b":%d\r\n" % len(self.done)
                        connection.sendall(answer)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)  # close alone leaves it open to the accept
        self.listener.close()


class Client:
    """One connection; a command gives its answer, or None when the connection ended."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=60)

    def send(self, *words: str) -> None:
        self.sock.sendall(command(*(word.encode() for word in words)))

    def answer(self) -> str | None:
        data = b""
        while not data.endswith(b"\r\n"):
            try:
                chunk = self.sock.recv(1)
            except ConnectionError:
                return None
            if not chunk:
                return None
            data += chunk
        return data[1:-2].decode()

    def ask(self, *words: str) -> str | None:
        try:
            self.send(*words)
        except ConnectionError:
            return None
        return self.answer()

    def close(self) -> None:
        self.sock.close()
