"""``bettong top``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.live import Live

from bettong.harness.cli.console import ToReader
from bettong.harness.cli.metrics_view import MetricsView
from bettong.lineage.errors import UsageError

_MOST = 64 << 20
_PERIOD = click.FloatRange(0.01, 3600, clamp=False)


@click.command("top")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Show what the file says now, and end.")
@click.option(
    "--every",
    type=_PERIOD,
    metavar="SECONDS",
    default=0.5,
    show_default=True,
    help="Seconds between looks.",
)
def command(file: Path, once: bool, every: float) -> None:
    """Show the figures of a run while it goes on, until Ctrl-C.

    FILE is what the run writes: bettong start --metrics FILE.
    """
    if every != every:
        raise UsageError("--every: nan is no time; give seconds, such as 0.5")
    view, console = MetricsView(str(file)), ToReader()
    lines = _appended(file)
    view.add(next(lines))
    if once:
        console.print(view.picture())
        return
    with contextlib.suppress(KeyboardInterrupt), Live(view.picture(), console=console) as live:
        for new in lines:
            view.add(new)
            live.update(view.picture())
            time.sleep(every)


def _appended(path: Path) -> Iterator[list[str]]:
    """The lines that the file has, then again and again those that have come since."""
    try:
        with path.open(encoding="utf-8") as file:
            rest = ""
            while True:
                *whole, rest = (rest + file.read(_MOST)).split("\n")
                if len(rest) >= _MOST:
                    raise UsageError(f"{path} is no metrics file: a line of it does not end")
                yield whole
    except OSError as e:
        raise UsageError(f"cannot read {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"{path} is no metrics file: {e}") from e
