"""The one outermost rule: what a command ends with when it does not end by itself.

0 and 1 are given with a result in hand, by :func:`bettong.harness.cli.output.exit_code` alone.
A mistake of the user's, or something that the machine refuses, is 2 and one line. What nobody
foresaw is 3, one line, and a file with the traceback.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from bettong.harness.cli.printing import complain
from bettong.harness.cli.supervisor import EXIT_UNKNOWN, EXIT_USAGE
from bettong.lineage.errors import BettongError
from bettong.lineage.secrets import masked
from bettong.lineage.user_code import in_one_line

_SIGNALLED = 128


@contextmanager
def guarded() -> Iterator[None]:
    """Turns whatever a command raises into one line, and into ``click.exceptions.Exit``."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except BaseException as e:
        raise click.exceptions.Exit(_report(e)) from e


def _report(error: BaseException) -> int:
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx is not None else "bettong"
        complain(f"{error.format_message()} (see {path} --help)")
        return EXIT_USAGE
    if isinstance(error, click.ClickException):
        complain(error.format_message())
        return EXIT_USAGE
    if isinstance(error, click.Abort | KeyboardInterrupt):
        complain("interrupted")
        return _SIGNALLED + 2
    if isinstance(error, BettongError):
        complain(str(error))
        return EXIT_USAGE
    if isinstance(error, SystemExit):
        complain(f"no result: {in_one_line(error)}: code that was loaded cannot choose the answer")
        return EXIT_UNKNOWN
    if isinstance(error, OSError) and error.errno is not None:
        complain(_of_the_machine(error))
        return EXIT_USAGE
    if isinstance(error, re.error):
        complain(f"{error.pattern!r} is no pattern: {error}")
        return EXIT_USAGE
    if isinstance(error, UnicodeEncodeError):
        complain(f"{error.object[:80]!r} is no text that can be written as {error.encoding}")
        return EXIT_USAGE
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    complain(f"no result, by a defect of Bettong: {what[:300]}; {_kept(error)}")
    return EXIT_UNKNOWN


def _of_the_machine(error: OSError) -> str:
    what = os.strerror(error.errno or 0)
    if error.errno == errno.EPIPE:
        return "whoever read the output has gone"
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    where = " and ".join(names) or "the output"
    return f"{where}: {what}: choose another place, or make room or give leave there"


def _kept(error: BaseException) -> str:
    """Where the traceback is, for whoever mends it."""
    text = masked("".join(traceback.format_exception(error)))
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-")
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"bettong-error-{now}", suffix=".txt", delete=False,
            encoding="utf-8", errors="backslashreplace",
        ) as file:  # fmt: skip
            file.write(text)
    except OSError as e:
        return f"its traceback could not be kept: {e}"
    return f"please report it with {file.name}"
