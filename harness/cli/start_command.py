"""``bettong start``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from bettong.engine import Application
from bettong.engine.address import Address
from bettong.engine.batching import parse_wait
from bettong.engine.config import RunConfig
from bettong.engine.in_process import run_in_process
from bettong.engine.net.access import Key, ListenConfig, read_token
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.resilience import GIVES_UP
from bettong.engine.state.manifest import newest_batch
from bettong.harness.backends.base import Runner
from bettong.harness.backends.spark_master import check_url
from bettong.harness.cli import application_options as launch
from bettong.harness.cli import service, start_config
from bettong.harness.cli.printing import say
from bettong.harness.cli.service import Stop
from bettong.lineage.counted import counted

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command("start", short_help="Run an application of your own until its streams have ended.")
@click.argument("application", metavar="MODULE:NAME")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=start_config.read,
    help="TOML file with these options under their names, as application, checkpoint, [source]; "
    "what the command line says wins.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME=WHERE",
    help="Where a stream comes from: a file, a folder, HOST:PORT of a gateway, "
    "kafka://HOST:PORT/TOPIC, or landed:FOLDER of a Landing. Once for each.",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="NAME=WHERE",
    help="Where outputs go: a folder, or HOST:PORT of a receiver. Once for each.",
)
@click.option(
    "--checkpoint",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the run's progress and state; the same one goes on where it ended.",
)
@click.option(
    "--runner",
    type=click.Choice(get_args(Runner)),
    default="spark",
    show_default=True,
    help="in-process: without Spark, in this process.",
)
@click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Of Spark.")
@click.option(
    "--batch",
    type=click.IntRange(1, 1 << 31),
    metavar="N",
    help="A batch closes when it has so many messages of a stream. Default: what the application "
    "says, or 10000.",
)
@click.option(
    "--wait",
    metavar="50ms|2s|never",
    help="It also closes when its first message has waited so long, with what there is of each "
    "stream; never: by number alone. Default: what the application says, or 50ms.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 1 << 16),
    metavar="N",
    help="State partitions: several use several cores, one is the quickest for small batches. "
    "Default: 4, in-process 1.",
)
@click.option(
    "--resilience",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="off: a crash of the driver ends everything; what is given up is printed.",
)
@click.option(
    "--state",
    metavar="s3://BUCKET/PREFIX",
    help="Where state is kept that workers share; by default in the checkpoint.",
)
@click.option(
    "--metrics",
    metavar="FILE|HOST:PORT",
    help="A file that gets a line of JSON for each batch (see bettong top), or where Prometheus "
    "asks.",
)
@click.option(
    "--health",
    metavar="HOST:PORT",
    help="Where a supervisor asks: /live, /ready, /lag.",
)
@click.option(
    "--log-format",
    type=click.Choice(service.LOG_FORMATS),
    default="text",
    show_default=True,
    help="json: a line of JSON for each event, on stderr.",
)
@click.option("--tls-ca", type=_FILE, help="Speak TLS with gateway and receiver.")
@click.option("--token-file", type=_FILE, help="Token of gateway, receiver, metrics and health.")
@click.option("--tls-cert", type=_FILE, help="Certificate of the listeners for metrics and health.")
@click.option("--tls-key", type=_FILE, help="Its key.")
@click.option("--tls-client-ca", type=_FILE, help="Who signed those who may ask there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(
    application: str,
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    checkpoint: Path,
    runner: Runner,
    master: str,
    batch: int | None,
    wait: str | None,
    partitions: int | None,
    resilience: str,
    state: str | None,
    metrics: str | None,
    health: str | None,
    log_format: service.LogFormat,
    tls_ca: Path | None,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    as_json: bool,
) -> None:
    """Run an application of your own, or go on with it, until its streams have ended.

    MODULE:NAME is the application, also of a module in this folder.

    SIGTERM and SIGINT end the run after the batch at hand, with exit code 0; the next start goes on
    there.
    """
    with service.log_as(log_format), service.stopped_by_signals() as stop:
        app = launch.load_application(application)
        token = read_token(token_file)
        key = Key(token, tls_ca)
        access = ListenConfig(Address("127.0.0.1", 0), tls_cert, tls_key, tls_client_ca, token)
        config = RunConfig(
            checkpoint,
            {
                name: launch.source(name, where, key, checkpoint)
                for name, where in launch.named(sources, "--source").items()
            },
            {
                name: launch.sink(app, name, where, key)
                for name, where in launch.named(sinks, "--sink").items()
            },
            batch_messages=batch,
            batch_wait_s=None if wait is None else parse_wait(wait),
            state_partitions=partitions or (RunConfig.state_partitions if runner == "spark" else 1),
            resilience=resilience == "on",
            metrics=launch.metrics(metrics, access),
            state=launch.state(state),
            health=None if health is None else replace(access, address=Address.parse(health)),
        )
        config.check(app)
        launch.expect_sinks_of_their_own(config, launch.named(sinks, "--sink"))
        config.expect_known_batches()  # before Spark is started for nothing
        service.log.info("starting", extra={"fields": {"application": app.name, "runner": runner}})
        try:
            done = _run(app, config, runner, master, stop)
        except ConnectionLostError as e:
            if not stop.is_set():
                raise
            service.log.warning("the run has ended without its last words to others: %s", e)
            done = newest_batch(config.store) + 1
        reported: dict[str, object] = {"batches": done}
        reported["gives_up"] = [] if config.resilience else list(GIVES_UP)
        if stop.by:
            reported["stopped_by"] = stop.by
        service.log.info("ended", extra={"fields": {"application": app.name, **reported}})
        if as_json:
            click.echo(json.dumps(reported))
        else:
            ended = f"; {stop.by} ended the run, the next start goes on there" if stop.by else ""
            say(f"{app.name}: {counted(done, 'batch', 'batches')} done{ended}")


def _run(app: Application, config: RunConfig, runner: Runner, master: str, stop: Stop) -> int:
    """Run until the streams have ended or a signal has come; how many batches have been done."""
    if runner == "in-process":
        return run_in_process(app, config, stop)
    check_url(master)
    from bettong.engine.spark.runner import run
    from bettong.harness.spark.user_session import session

    with session(app.name, master, config.checkpoint / "spark.log") as spark:
        stop.listen()  # Spark takes SIGINT for itself
        return run(app, spark, config).await_drained(stop)
