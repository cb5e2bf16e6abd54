"""Distributed protocols as Dedalus programs: counterparts of the plain-Python ones of the same
name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from bettong.lineage.dedalus import DedalusProgram, load

LIBRARIES = ("broadcast", "commitment", "excuse", "two-phase", "two-phase-timeout", "timers")
"""Files that programs include; they are no protocols by themselves."""


def names() -> tuple[str, ...]:
    """Names of the programs that ship, sorted."""
    found = (Path(f.name) for f in _folder().iterdir())
    return tuple(sorted(f.stem for f in found if f.suffix == ".ded" and f.stem not in LIBRARIES))


def path(name: str) -> Path:
    """The file of a program."""
    return Path(str(_folder() / f"{name}.ded"))


def program(name: str) -> DedalusProgram:
    """A program, ready to run on the nodes that it names."""
    return load([path(name)])


def _folder() -> resources.abc.Traversable:
    return resources.files(__name__)
