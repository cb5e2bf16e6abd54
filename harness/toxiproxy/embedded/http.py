"""HTTP around the API: threads parse, the event loop acts."""

from __future__ import annotations

import asyncio
import socketserver
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bettong.harness.toxiproxy.embedded.api import Api, Response

_MAX_BODY = 1024 * 1024
_IDLE_SECONDS = 60
_ANSWER_SECONDS = 10


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Toxiproxy"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one write
    server: ApiServer

    def _handle(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._answer(
                Response(413, b"the body has no length, or too great a one\n", "text/plain")
            )
            return
        body = self.rfile.read(int(length))
        if self.headers.get("User-Agent", "").startswith("Mozilla/"):  # keeps web pages out
            self._answer(Response(403, b"User agent not allowed\n", "text/plain"))
        else:
            self._answer(self.server.ask(self.command, self.path, body))

    def _answer(self, answer: Response) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 (the names that http.server asks for)

    def log_message(self, format: str, *args: object) -> None:
        pass


class ApiServer(ThreadingHTTPServer):
    """Serves an Api whose event loop runs in another thread."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, api: Api) -> None:
        self._api = api
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own asks DNS for our name

    def ask(self, method: str, path: str, body: bytes) -> Response:
        future = asyncio.run_coroutine_threadsafe(self._act(method, path, body), self._api.loop)
        try:
            return future.result(_ANSWER_SECONDS)
        except TimeoutError:
            future.cancel()
            return Response(503, b"the server is too busy\n", "text/plain")

    async def _act(self, method: str, path: str, body: bytes) -> Response:
        answer = self._api.handle(method, path, body)
        await asyncio.sleep(0)  # sockets that were told to close are closed before the answer
        return answer
