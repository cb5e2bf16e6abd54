"""What the process of a server needs to start."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import importlib
import json
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from bettong.engine.net.access import add_listen_options
from bettong.engine.net.listener import Limits
from bettong.engine.net.memory import share_one_heap
from bettong.engine.net.server import Server
from bettong.engine.storage.disk import OS_DISK
from bettong.lineage.errors import BettongError, UsageError

log = logging.getLogger("bettong")
C = TypeVar("C")


def server_options(module: str, about: str, server: type[Server]) -> argparse.ArgumentParser:
    """A command line with the options that every server has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    add_listen_options(parser)
    parser.add_argument("--dir", type=Path, required=True, help="where everything is kept")
    parser.add_argument("--segment-bytes", type=positive, default=64 << 20, metavar="N")
    parser.add_argument("--max-frame-bytes", type=positive, default=Limits.frame_bytes, metavar="N")
    parser.add_argument("--max-connections", type=positive, default=Limits.connections, metavar="N")
    parser.add_argument("--idle", type=seconds, default=Limits.idle_s, metavar="SECONDS")
    parser.add_argument(
        "--class",
        dest="class_path",
        default=f"{module}:{server.__name__}",
        metavar="MODULE:CLASS",
        help=f"a class derived from {server.__name__} to run instead",
    )
    return parser


def positive(text: str) -> int:
    """A number of at least 1 that a 32-bit length can say; raises ValueError."""
    number = int(text)
    if not 1 <= number < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {(1 << 32) - 1}")
    return number


def natural(text: str) -> int:
    """The same, or 0; raises ValueError."""
    return 0 if text == "0" else positive(text)


def seconds(text: str) -> float:
    """A time of more than nothing and at most a year; raises ValueError."""
    number = float(text)
    if not 0 < number <= 31_536_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return number


def limits_from(options: argparse.Namespace) -> Limits:
    """The limits that the options ask for."""
    return Limits(
        connections=options.max_connections,
        frame_bytes=options.max_frame_bytes,
        idle_s=options.idle,
    )


def lock_directory(directory: Path) -> IO[bytes]:
    """Make the directory this process' own as long as the returned file is open.

    Raises UsageError when another process has it.
    """
    try:
        OS_DISK.make_directory(directory.absolute())
        file = (directory / ".lock").open("wb")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        raise UsageError(f"{directory} belongs to another process that still runs") from e
    except OSError as e:
        raise UsageError(f"cannot use {directory}: {e.strerror}") from e
    return file


def load_class(path: str, base: type[C]) -> type[C]:
    """The class ``module:Class``, which must be ``base`` or derived from it; raises UsageError."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as e:
        raise UsageError(f"--class {path}: write module:Class ({e})") from e
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UsageError(f"--class {path} is not derived from {base.__name__}")
    return found


def run_process(name: str, start: Callable[[], Server]) -> int:
    """Run a server as this process: one JSON line ``{"listening": "HOST:PORT"}`` on stdout when
    it accepts, log lines on stderr, exit code 0 after SIGTERM, 2 with one line when it cannot
    start."""
    logging.basicConfig(
        level=logging.WARNING, format=f"{name}: %(message)s", stream=sys.stderr, force=True
    )
    share_one_heap()
    try:
        server = start()
    except (BettongError, OSError) as e:
        log.error("%s", e)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(json.dumps({"listening": str(server.address)}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    return 0
