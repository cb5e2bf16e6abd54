"""A package with one module changed, in front of the installed one.

Python finds the rooms of ``bettong`` on several paths: the room that is copied to a folder which
``PYTHONPATH`` names comes before the installed one, in every process that is started with it, fork
servers and Spark's workers too. The installed package and the work tree stay as they are.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bettong.scenarios.benchmarks.errors import WrongResultError


def room_folder(room: str) -> Path:
    """Where a room of the installed package is."""
    found = importlib.util.find_spec(f"bettong.{room}")
    assert found is not None and found.submodule_search_locations
    return Path(next(iter(found.submodule_search_locations)))


def source_of(path: str) -> str:
    """The text of a module of the installed package, such as ``engine/ids.py``."""
    room, _, rest = path.partition("/")
    return (room_folder(room) / rest).read_text("utf-8")


def modules_of(room: str) -> list[str]:
    """The modules of a room, by their path in the package."""
    folder = room_folder(room)
    return [f"{room}/{p.relative_to(folder).as_posix()}" for p in sorted(folder.rglob("*.py"))]


def build(folder: Path, texts: Mapping[str, str]) -> None:
    """Put copies of the rooms that the texts are of into a folder, with these texts in them.

    Args:
        texts: of modules, by their path in the package.
    """
    for room in sorted({path.partition("/")[0] for path in texts}):
        shutil.copytree(room_folder(room), folder / "bettong" / room)
    for path, text in texts.items():
        compile(text, path, "exec")
        (folder / "bettong" / path).write_text(text, "utf-8")


def in_front(folder: Path) -> str:
    """The value of PYTHONPATH with which processes load what is in the folder."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def check(folder: Path, path: str) -> None:
    """Make sure that a process loads a module from the folder; raises WrongResultError."""
    room, _, rest = path.partition("/")
    name = ".".join(["bettong", room, *rest.removesuffix(".py").split("/")])
    name = name.removesuffix(".__init__")
    found = subprocess.run(
        [sys.executable, "-c", f"import {name} as m; print(m.__file__)"],
        env={**os.environ, "PYTHONPATH": in_front(folder)},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not found.startswith(str(folder)):
        raise WrongResultError(f"{name} is loaded from {found or 'nowhere'}, not from {folder}")
