"""The receiver: stages rows and makes whole batches of them visible.

Run it with ``python -m bettong.engine.receiver.server --listen 127.0.0.1:5000 --dir DIR``; the
rows of application ``a`` appear in ``DIR/a/output.jsonl``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from bettong.engine import steps
from bettong.engine.net.access import ListenConfig, listen_config_from
from bettong.engine.net.connection import Connection
from bettong.engine.net.errors import RefusedError
from bettong.engine.net.frame import Buffer
from bettong.engine.net.listener import Limits
from bettong.engine.net.names import check_name, is_name
from bettong.engine.net.process import (
    limits_from,
    load_class,
    lock_directory,
    run_process,
    server_options,
)
from bettong.engine.net.server import Server
from bettong.engine.net.watched import if_watched, known
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.receiver.protocol import (
    CODEC,
    Commit,
    Committed,
    Hello,
    Open,
    Opened,
    Prepare,
    Prepared,
    Welcome,
    at_sink,
    create_step,
    open_step,
    prepare_step,
)
from bettong.engine.receiver.rows import Columns, lines


class Receiver(Server):
    """One receiver process.

    Args:
        directory: one directory in it for each application; this process' own.

    Raises:
        UsageError: it cannot listen there, or the directory is in use.
        DamageError: what is in the directory is damaged.
    """

    ledger_class: type[Ledger] = Ledger

    def __init__(
        self,
        access: ListenConfig,
        directory: Path,
        limits: Limits | None = None,
        *,
        segment_bytes: int = 64 << 20,
        max_applications: int = 1000,
    ) -> None:
        self._owned = lock_directory(directory)
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._max_applications = max_applications
        self._ledgers: dict[str, Ledger] = {}
        self._opening = threading.Lock()
        for path in sorted(directory.iterdir()):
            if path.is_dir() and is_name(path.name):  # not a file system's lost+found
                self._ledgers[path.name] = self._opened(path.name)
        super().__init__(access, CODEC, limits or Limits())

    def ledger(self, application: str) -> Ledger:
        """The application's ledger, made when it is new."""
        check_name("an application", application)
        with self._opening:
            if application not in self._ledgers:
                if len(self._ledgers) >= self._max_applications:
                    raise RefusedError(
                        "applications", f"{len(self._ledgers)} applications are the most here"
                    )
                with steps.step(create_step(application)):
                    self._ledgers[application] = self._opened(application)
            return self._ledgers[application]

    def _opened(self, application: str) -> Ledger:
        return self.ledger_class(
            self._directory / application, application, segment_bytes=self._segment_bytes
        )

    def serve(self, connection: Connection) -> None:
        hello = connection.receive()
        if not isinstance(hello, Hello):
            raise RefusedError("hello", "the first frame must be Hello")
        if not self.access.admits(hello.token):
            raise RefusedError("token", "the token is wrong or missing: give --token-file FILE")
        self.let_in(connection)
        ledger = self.ledger(hello.application)
        connection.send(Welcome(ledger.epoch))
        while True:
            request = connection.receive(self.limits.idle_s)
            if isinstance(request, Prepare):
                connection.send(self.prepare(ledger, request))
            elif isinstance(request, Commit):
                connection.send(self.commit(ledger, request))
            elif isinstance(request, Open):
                connection.send(self.open(ledger, request))
            else:
                raise RefusedError("frame", f"a client sent {type(request).__name__}")

    def open(self, ledger: Ledger, request: Open) -> Opened:
        """Begin an epoch."""
        step = at_sink(open_step(request.epoch), request.cause)
        created = if_watched(create_step(ledger.application))
        with steps.step(step, causes=known(request.cause, created)):
            ledger.check_following(request.following)
            ledger.open(request.epoch)
        return Opened(if_watched(step))

    def prepare(self, ledger: Ledger, request: Prepare) -> Prepared:
        """Stage one part of an attempt's rows: the last one is the step of the whole, and each one
        before it a step ``part=K``."""
        rows = lines(request.batch, Columns(request.ids, request.keys, request.keyed, request.data))
        cause = request.cause
        whole = request.batch, request.partition, request.attempt
        step = at_sink(prepare_step(*whole, None if request.last else request.part), cause)
        before = (at_sink(prepare_step(*whole, part), cause) for part in range(request.part))
        causes = [*known(cause), at_sink(open_step(request.epoch), cause), *before]
        with steps.step(step, causes=causes) as s:
            recorded = self.stage(ledger, request, rows)
            s.note(recorded=recorded)
        return Prepared(recorded, if_watched(step))

    def stage(self, ledger: Ledger, request: Prepare, rows: Buffer) -> bool:
        """Whether the batch has been committed before; otherwise its rows are staged."""
        return ledger.prepare(
            request.epoch,
            request.batch,
            request.partition,
            request.attempt,
            request.part,
            request.last,
            rows,
        )

    def commit(self, ledger: Ledger, request: Commit) -> Committed:
        """Make a batch visible."""
        step = at_sink(f"receiver.commit/batch={request.batch}", request.cause)
        prepared = (
            at_sink(prepare_step(request.batch, p, a), request.cause)
            for p, a in sorted(request.winners.items())
        )
        with steps.step(step, causes=[*known(request.cause), *prepared]) as s:
            recorded = ledger.commit(request.epoch, request.batch, request.winners)
            s.note(recorded=recorded)
        return Committed(recorded, if_watched(step))


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    about = (__doc__ or "").split("\n")[0]
    options = server_options("bettong.engine.receiver.server", about, Receiver).parse_args(
        arguments
    )

    def start() -> Server:
        steps.install(steps.Instrumentation.from_env())
        with steps.step("receiver.start"):
            return load_class(options.class_path, Receiver)(
                listen_config_from(options),
                options.dir,
                limits_from(options),
                segment_bytes=options.segment_bytes,
            )

    return run_process("receiver", start)


if __name__ == "__main__":
    from bettong.engine.receiver.server import main as imported  # not a second copy of the classes

    sys.exit(imported())
