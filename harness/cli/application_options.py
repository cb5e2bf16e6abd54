"""An application with its sources and sinks, as the options of ``bettong start`` say it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bettong.engine import Application
from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.endpoints import GatewaySource, TcpSink, kept_as
from bettong.engine.metrics.config import Metrics
from bettong.engine.names import load_object
from bettong.engine.net.access import Key, ListenConfig
from bettong.engine.sinks.base import TwoPhaseSink
from bettong.engine.sinks.files import FileSink
from bettong.engine.sources.base import FileSource, StreamSource
from bettong.engine.sources.directory import DirectorySource
from bettong.engine.sources.kafka import KafkaSource
from bettong.engine.sources.landed import LandedSource
from bettong.engine.state.s3 import S3Store
from bettong.engine.state.store import Store
from bettong.lineage.errors import UsageError

KAFKA = "kafka://"
LANDED = "landed:"


def load_application(name: str) -> Application:
    """The application ``module:attribute``, also of a module in this folder; raises UsageError."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    found = load_object(name)
    if not isinstance(found, Application):
        raise UsageError(f"{name} is no Application, but {type(found).__name__}")
    return found


def named(options: Sequence[str], option: str) -> dict[str, str]:
    """What is said of each name, from ``NAME=VALUE``; raises UsageError."""
    found: dict[str, str] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: write NAME=WHERE")
        if name in found:
            raise UsageError(f"{option} {name} is given twice")
        found[name] = value
    return found


def source(name: str, where: str, key: Key, checkpoint: Path) -> StreamSource | KafkaSource:
    """Where a stream's messages come from: the lines of a file or of a folder's files, what a
    query of Spark's lands in a folder, a gateway, or a topic."""
    if where.startswith(KAFKA):
        servers, slash, topic = where.removeprefix(KAFKA).partition("/")
        if not (servers and slash and topic):
            raise UsageError(f"--source {name}={where}: write kafka://HOST:PORT/TOPIC")
        return KafkaSource(servers, topic)
    if where.startswith(LANDED):
        folder = Path(where.removeprefix(LANDED))
        if not folder.is_dir():
            raise UsageError(
                f"--source {name}={where}: there is no folder {folder} yet: make it, or start the "
                "query first that lands there"
            )
        return LandedSource(folder)
    path = Path(where)
    if path.is_dir():
        return DirectorySource(path, checkpoint / "index" / name)
    if path.exists():
        return FileSource(path)
    if Address.is_meant(where):
        return GatewaySource(Address.parse(where), name, key)
    raise UsageError(f"--source {name}={where}: there is no such file, nor is it a HOST:PORT")


def sink(app: Application, name: str, where: str, key: Key) -> TwoPhaseSink:
    """Where a sink's outputs go to: a receiver, or a folder that gets a file for each batch."""
    if Address.is_meant(where):
        return TcpSink(Address.parse(where), kept_as(app, name), key)
    return FileSink(Path(where))


def expect_sinks_of_their_own(config: RunConfig, sinks: Mapping[str, str]) -> None:
    """Raises UsageError when two sinks share a folder.

    A batch is made visible once, by its number: of two that have the same number in one place,
    the second would be taken for made already, and be lost without a word.
    """
    folders: dict[Path, str] = {}
    for name, made in config.sinks.items():
        if not isinstance(made, FileSink):
            continue
        other = folders.setdefault(made.directory.resolve(), name)
        if other != name:
            raise UsageError(
                f"--sink {name}={sinks[name]}: the sink {other} has this folder too: "
                "each needs its own"
            )


def state(where: str | None) -> Store | None:
    """Where the state log is; None is in the checkpoint. Raises UsageError."""
    return None if where is None else S3Store.parse(where)


def metrics(where: str | None, access: ListenConfig) -> Metrics | None:
    """Where figures go: a file, or an address at which Prometheus asks.

    Args:
        where: either of them.
        access: with everything but the address.
    """
    if where is None:
        return None
    if Address.is_meant(where):
        lock = (access.certificate, access.key, access.client_ca, access.token)
        return Metrics(listen=ListenConfig(Address.parse(where), *lock))
    return Metrics(file=Path(where))
