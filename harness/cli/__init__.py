"""The ``bettong`` command. Each subcommand lives in the module of its name and is imported only
when it is called, so that ``bettong --help`` starts neither Spark nor a solver."""

from __future__ import annotations

import importlib
import sys

import click

from bettong.lineage.errors import BettongError

COMMANDS = (
    "bench",
    "check",
    "check-job",
    "check-sink",
    "doctor",
    "list",
    "protocol",
    "replay",
    "report",
    "run",
    "start",
    "state",
    "top",
    "why",
)

EXIT_USAGE = 2


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bettong")
def cli() -> None:
    """Is a streaming pipeline or a sink effectively-once? If not: the smallest fault that breaks
    it, and why."""


def main() -> None:
    """Entry point: exit codes 0 held, 1 violated, 2 usage or set-up error, 3 unknown."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as e:
        e.show()
        sys.exit(EXIT_USAGE)
    except click.Abort:
        click.echo("bettong: interrupted", err=True)
        sys.exit(130)
    except BettongError as e:
        click.echo(f"bettong: {e}", err=True)
        sys.exit(EXIT_USAGE)
    sys.exit(code if isinstance(code, int) else 0)
