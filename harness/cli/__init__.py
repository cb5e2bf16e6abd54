"""The ``bettong`` command. Each subcommand lives in the module of its name and is imported only
when it is called, so that ``bettong --help`` starts neither Spark nor a solver."""

from __future__ import annotations

import importlib
import io
import sys
from importlib import metadata
from typing import Any

import click

from bettong.harness.cli.outermost import guarded
from bettong.harness.cli.supervisor import supervised

COMMANDS = (
    "bench",
    "check",
    "check-job",
    "check-sink",
    "demo",
    "doctor",
    "list",
    "museum",
    "protocol",
    "replay",
    "report",
    "run",
    "start",
    "state",
    "top",
    "why",
)


GROUP = "bettong.commands"
"""The entry point group in which packages name commands of theirs, as ``click.Command``."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *metadata.entry_points(group=GROUP).names})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            found = next(iter(metadata.entry_points(group=GROUP, name=name)), None)
            return None if found is None else found.load()
        module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with guarded():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Commands end by themselves or by ``ctx.exit``; all else has the outermost rule."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with guarded():
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bettong")
def cli() -> None:
    """Is a streaming pipeline or a sink effectively-once? If not: the smallest fault that breaks
    it, and why."""


def main() -> None:
    """Entry point: exit codes 0 held, 1 violated, 2 usage or set-up error, 3 unknown."""
    sys.exit(supervised(_run))


def _run() -> int:
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as e:
        return e.exit_code
    return code if isinstance(code, int) else 0
