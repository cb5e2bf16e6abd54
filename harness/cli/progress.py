"""Progress on the terminal: a moving line where there is one, nothing where there is not."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def counting(title: str, *, quiet: bool = False) -> Iterator[Callable[[str, int], None]]:
    """Gives a function that is told what is being done and how many were done.

    Written to standard error, so that standard output stays the answer alone.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda what, number: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title)

        def notify(what: str, number: int) -> None:
            progress.update(task, description=f"{title}: {what} {number:,}")

        yield notify
