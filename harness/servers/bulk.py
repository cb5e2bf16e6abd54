"""A small HTTP bulk API: what many services offer for loading rows.

``POST /rows`` with a JSON array of objects, each with an ``id``, stores all of them or none and
answers ``{"stored": n}``. With idempotency keys, a request whose ``Idempotency-Key`` header was
seen before is answered as it was the first time and stores nothing. ``GET /rows`` gives all rows,
one JSON object a line, in the order of storing; ``DELETE /rows`` forgets rows and keys.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bettong.harness.servers.server import Server, receive_exactly

_MAX_BODY = 64 * 1024 * 1024


class BulkServer(Server):
    """The API as a process of its own; stored rows survive its crash."""

    name = "bulk"

    def __init__(self, port: int | None = None, idempotency_keys: bool = False) -> None:
        super().__init__(port)
        self.idempotency_keys = idempotency_keys

    def url(self, address: tuple[str, int] | None = None) -> str:
        """Where rows are posted."""
        host, port = address or (self.host, self.port)
        return f"http://{host}:{port}/rows"

    def prepare(self) -> None:
        self._journal.touch()

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "bettong.harness.servers.bulk", self.host, str(self.port)]
        keys = ["--idempotency-keys"] if self.idempotency_keys else []
        return [*command, str(self._journal), *keys]

    def greet(self, connection: socket.socket) -> None:
        connection.sendall(b"HEAD /rows HTTP/1.0\r\n\r\n")
        receive_exactly(connection, 12)

    @property
    def _journal(self) -> Path:
        return self.folder / "rows.jsonl"


class _Store:
    """Requests that were carried out, one line for each, synced before the answer."""

    def __init__(self, journal: Path, idempotency_keys: bool) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, int] | None = {} if idempotency_keys else None
        self._rows: list[Any] = []
        for line in journal.read_text().splitlines():
            request = json.loads(line)
            self._apply(request["key"], request["rows"])
        self._file = journal.open("a")

    def _apply(self, key: str | None, rows: list[Any]) -> None:
        self._rows += rows
        if self._keys is not None and key is not None:
            self._keys[key] = len(rows)

    def add(self, key: str | None, rows: list[Any]) -> int:
        with self._lock:
            if self._keys is not None and key in self._keys:
                return self._keys[key]
            self._file.write(json.dumps({"key": key, "rows": rows}) + "\n")
            self._sync()
            self._apply(key, rows)
            return len(rows)

    def rows(self) -> list[Any]:
        with self._lock:
            return list(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._file.truncate(0)
            self._sync()
            self._rows = []
            self._keys = None if self._keys is None else {}

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    store: _Store

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MAX_BODY:
            self.close_connection = True
            return self._answer(411, b'{"error": "no Content-Length, or too great a one"}')
        body = self.rfile.read(int(length))
        if len(body) < int(length):  # cut off: nothing of it is stored
            self.close_connection = True
            return None
        if self.path != "/rows":
            return self._answer(404, b'{"error": "POST /rows"}')
        try:
            rows = json.loads(body)
            if not isinstance(rows, list) or not all("id" in row for row in rows):
                raise ValueError("an array of objects with an id is expected")
        except (TypeError, ValueError) as e:
            return self._answer(400, json.dumps({"error": str(e)}).encode())
        stored = self.store.add(self.headers.get("Idempotency-Key"), rows)
        return self._answer(200, json.dumps({"stored": stored}).encode())

    def do_GET(self) -> None:
        lines = [json.dumps(row) + "\n" for row in self.store.rows()]
        self._answer(200, "".join(lines).encode())

    def do_HEAD(self) -> None:
        self._answer(200, b"")

    def do_DELETE(self) -> None:
        self.store.clear()
        self._answer(204, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own asks DNS for our name


def main() -> None:
    parser = argparse.ArgumentParser(prog="bettong.harness.servers.bulk")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--idempotency-keys", action="store_true")
    options = parser.parse_args()
    _Handler.store = _Store(options.journal, options.idempotency_keys)
    _HttpServer((options.host, options.port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
