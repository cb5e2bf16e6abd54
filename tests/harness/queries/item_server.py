"""A bulk API that answers for each item, as that of Elasticsearch, and sinks that use it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

import requests

from bettong.harness.queries.sink.contract import Environment, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class ItemServer:
    """``POST /rows/_bulk`` stores documents by their ids, ``GET /rows`` gives them, ``DELETE``
    forgets them. A context manager."""

    def __init__(self) -> None:
        rows: dict[str, Any] = {}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
                items = []
                for asked, document in zip(lines[::2], lines[1::2], strict=True):
                    id = json.loads(asked)["index"]["_id"]
                    rows[id] = json.loads(document)
                    items.append({"index": {"_id": id, "status": 201}})
                self._answer({"took": 1, "errors": False, "items": items})

            def do_GET(self) -> None:
                self._answer(list(rows.values()))

            def do_DELETE(self) -> None:
                rows.clear()
                self._answer({})

            def _answer(self, told: Any) -> None:
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = "{}:{}".format(*self._server.server_address)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> ItemServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class Items(Sink):
    """Indexes each row by its id, and looks at what it is told of each."""

    def setup(self, env: Environment) -> None:
        requests.delete(self._url(env), timeout=5).raise_for_status()

    def write(self, rows: DataFrame, env: Environment) -> StreamingQuery:
        def index(batch: DataFrame, batch_id: int) -> None:
            lines = []
            for row in batch.drop("ts").collect():
                lines += [{"index": {"_id": row.id}}, row.asDict()]
            body = "".join(json.dumps(line) + "\n" for line in lines)
            if body:
                answer = requests.post(f"{self._url(env)}/_bulk", data=body, timeout=5)
                answer.raise_for_status()
                self.look_at(answer.json())

        writer = rows.writeStream.foreachBatch(index)
        return writer.option("checkpointLocation", env.checkpoint).start()

    def look_at(self, answer: Any) -> None:
        if answer["errors"]:
            raise OSError(f"not all was indexed: {answer['items']}")

    def read(self, env: Environment) -> Iterable[Any]:
        found: list[Any] = requests.get(self._url(env), timeout=5).json()
        return found

    @staticmethod
    def _url(env: Environment) -> str:
        host, port = env.address("items")
        return f"http://{host}:{port}/rows"


class ItemsUnseen(Items):
    """The same without the look: 200 is taken for all."""

    def look_at(self, answer: Any) -> None:
        pass
