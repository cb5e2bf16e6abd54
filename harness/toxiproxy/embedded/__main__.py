"""Starts the embedded server: ``python -m bettong.harness.toxiproxy.embedded``."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading

from bettong.harness.toxiproxy.embedded.api import Api
from bettong.harness.toxiproxy.embedded.http import ApiServer


def main() -> int:
    parser = argparse.ArgumentParser(prog="bettong.harness.toxiproxy.embedded")
    parser.add_argument("--host", default="127.0.0.1", help="address of the API")
    parser.add_argument("--port", type=int, default=8474, help="port of the API, 0 for a free one")
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="end when standard input ends, as it does when the parent dies",
    )
    options = parser.parse_args()
    return asyncio.run(_serve(options.host, options.port, options.until_eof))


async def _serve(host: str, port: int, until_eof: bool) -> int:
    loop = asyncio.get_running_loop()
    try:
        server = ApiServer(host, port, Api(loop))
    except OSError as e:
        print(f"the API cannot listen on {host}:{port}: {e}", file=sys.stderr)
        return 1
    done = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    if until_eof:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Thread(target=server.serve_forever, args=(60.0,), daemon=True).start()
    print(f"{server.server_address[0]!s}:{server.server_address[1]}", flush=True)
    await done.wait()
    server.server_close()
    return 0


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
