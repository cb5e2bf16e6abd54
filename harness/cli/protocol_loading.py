"""Finding the program that ``bettong protocol`` is asked to test."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bettong.harness.catalog import find
from bettong.harness.queries.sink.loading import module_of
from bettong.lineage.dedalus import load
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import did_you_mean
from bettong.lineage.protocols.protocol import Protocol
from bettong.lineage.protocols.rounds import RoundProgram
from bettong.lineage.protocols.simulator import Simulation
from bettong.lineage.user_code import guarded

BOUNDS = Protocol.bounds


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program to be tested.

    Attributes:
        program: it.
        nodes: names of its nodes.
        files: its own text, includes and what stands beside its classes among them.
        bounds: EOT, EFF and crashes that are taken when none are given.
    """

    program: RoundProgram
    nodes: tuple[str, ...]
    files: tuple[Path, ...]
    bounds: tuple[int, int, int] = BOUNDS


def load_program(names: tuple[str, ...], nodes: tuple[str, ...]) -> Loaded:
    """The program of a shipped name, ``module:Class``, ``file.py:Class``, or of ``.ded`` files.

    Raises UsageError when there is none.
    """
    if all(name.endswith(".ded") for name in names):
        program = load([Path(name) for name in names], nodes)
        return Loaded(program, program.nodes, program.files)
    if len(names) > 1:
        raise UsageError(
            f"{' '.join(names)}: only Dedalus files (.ded) can be combined; name one protocol"
        )
    name = names[0]
    if name.endswith(".py"):
        raise UsageError(f"{name}: name the class too, as in {name}:MyProtocol")
    cls = _class_of(name) if ":" in name else find(name, "protocol").load()
    with guarded(name):
        protocol: Protocol = cls()
    if nodes:
        protocol.nodes = nodes  # type: ignore[misc]
    simulation = Simulation(protocol, _title(name))
    return Loaded(simulation, tuple(protocol.nodes), tuple(_written_in(cls)), protocol.bounds)


def _written_in(cls: type[Protocol]) -> Iterator[Path]:
    """The files of a class and its bases, with those beside them, which they may import."""
    for base in cls.__mro__:
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        if isinstance(file, str):
            yield from (f for f in Path(file).parent.glob("*.py") if f.is_file())


def _title(name: str) -> str:
    return name.rsplit(":", 1)[-1]


def _class_of(name: str) -> type[Protocol]:
    place, wanted = name.rsplit(":", 1)
    module = module_of(place)
    known = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Protocol) and value is not Protocol
    }
    if wanted not in known:
        hint = did_you_mean(wanted, known) or f"there is {', '.join(known) or 'no protocol at all'}"
        raise UsageError(f"no protocol {wanted} in {place}; {hint}")
    return known[wanted]
