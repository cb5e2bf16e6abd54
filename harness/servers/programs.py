"""Finding the programs of servers, and users to run them as."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path

from bettong.harness.servers.errors import ServerMissingError


def find_program(name: str, install: str, folders: Sequence[str] = (), on_path: bool = True) -> str:
    """The path of a program: on PATH, or in folders where packages put it (globs, newest last).

    Raises ServerMissingError, naming the command that installs it."""
    found_on_path = shutil.which(name) if on_path else None
    if found_on_path is not None:
        return found_on_path
    for pattern in folders:
        found = sorted(Path("/").glob(f"{pattern.lstrip('/')}/{name}"))
        if found:
            return str(found[-1])
    raise ServerMissingError(f"{name} is not installed: {install}")


def unprivileged_user(*names: str) -> str | None:
    """Whom to run a server as that refuses root: the first of the users that exists. None when we
    are not root, and so run it as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in (*names, "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise ServerMissingError(
        f"no user to run the server as, which refuses root: useradd {names[0]}"
    )
