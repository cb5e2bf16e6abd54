"""A server of a protocol that nobody knows: a line for each row, kept at once or at the end."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bettong.harness.queries.sink.contract import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class LineServer:
    """``at_once``: each row is kept as its line comes, else all of a connection's rows when it has
    said END, each id once. GET gives all rows, CLEAR forgets them. A context manager."""

    def __init__(self, at_once: bool) -> None:
        rows: list[str] = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                reported: list[str] = []
                for raw in self.rfile:
                    line = raw.decode()
                    if not line.endswith("\n"):
                        return
                    if line == "CLEAR\n":
                        rows.clear()
                    elif line == "GET\n":
                        self.wfile.write("".join(rows).encode())
                    elif line == "END\n":
                        rows.extend(row for row in reported if row not in rows)
                    elif at_once:
                        rows.append(line)
                        continue
                    else:
                        reported.append(line)
                        continue
                    self.wfile.write(b".\n")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = "{}:{}".format(*self._server.server_address)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> LineServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class Lines(Sink):
    """Sends a batch's rows in one go, and waits for the answer."""

    def setup(self, env: Environment) -> None:
        self._ask(env, "CLEAR\n")

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def send(batch: DataFrame, batch_id: int) -> None:
            lines = [json.dumps({"id": row.id}) + "\n" for row in sorted(batch.collect())]
            self._ask(env, "".join(lines) + "END\n")

        writer = rows.writeStream.foreachBatch(send)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def read(self, env: Environment) -> Iterable[Any]:
        return [json.loads(line) for line in self._ask(env, "GET\n")]

    @staticmethod
    def _ask(env: Environment, text: str) -> list[str]:
        import socket

        with socket.create_connection(env.address("lines"), 10) as link:
            link.sendall(text.encode())
            answer: list[str] = []
            for line in link.makefile("r", encoding="utf-8"):
                if line == ".\n":
                    return answer
                answer.append(line)
        raise ConnectionError("the server closed the connection without an answer")
