"""What the probes of a driver host and its Python workers are told, and what they have noted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bettong.engine.steps import Instrumentation
from bettong.harness.processes import clock_ahead

_AIM = "bettong-probe.json"
NOTES = "bettong-outside.txt"
NOTED_PROCESSES = "bettong-processes.txt"
NOTED_TURNS = "bettong-turns.txt"


def aim(
    folder: Path | None,
    instrumentation: Instrumentation,
    home: Path | None = None,
    elsewhere: bool = False,
    lines: Iterable[int] = (),
    ran: Path | None = None,
    ahead_s: int = 0,
) -> None:
    """Have the probes report what happens below ``folder``; None turns them off.

    Args:
        home: the folder of temporary files of the processes concerned, when it is not this
            process's own.
        elsewhere: what the code changes in other places is a step as well.
        lines: before each line of the user's code, in batches and tasks, with one of these numbers
            is a step.
        ran: where each line of it that begins is noted, if anywhere.
        ahead_s: so far ahead is the clock of Python in the processes concerned.
    """
    value = {
        "folder": folder and f"{folder}/",
        "instrumentation": asdict(instrumentation),
        "elsewhere": elsewhere,
        "lines": sorted(lines),
        "ran": ran and str(ran),
        "ahead_s": ahead_s,
    }
    file = aim_file() if home is None else home / _AIM
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(value))
    temporary.replace(file)
    if home is None:
        clock_ahead.set_ahead(ahead_s)  # before anything happens of which the probe is told


def forget_notes() -> None:
    """What was noted so far is of no interest."""
    for name in (NOTES, NOTED_PROCESSES, NOTED_TURNS):
        aim_file().with_name(name).unlink(missing_ok=True)


def outside(folder: Path, home: Path | None = None) -> list[str]:
    """The files that were changed since by Python or by Hadoop's local files, other than those
    below a folder, temporary ones of this host, or the one with this ``home``, and those of Python
    itself."""
    noted = _noted(NOTES, home)
    return sorted(path for path in noted if not path.startswith(f"{folder}/"))


def processes(home: Path | None = None) -> list[str]:
    """The processes that the user's code has started since, in batches and tasks. ``home``: as for
    :func:`outside`."""
    return sorted(_noted(NOTED_PROCESSES, home))


def in_turn(home: Path | None = None) -> bool:
    """Whether a batch has given something to threads since, that went on one after the other.
    ``home``: as for :func:`outside`."""
    return bool(_noted(NOTED_TURNS, home))


def _noted(name: str, home: Path | None) -> set[str]:
    try:
        return set(((home or aim_file().parent) / name).read_text("utf-8").splitlines())
    except OSError:
        return set()


def aim_file() -> Path:
    """Where probes are told: the same for a driver host and its Python workers, whose folder of
    temporary files is theirs alone."""
    return Path(tempfile.gettempdir()) / _AIM
