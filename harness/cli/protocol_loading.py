"""Finding the program that ``bettong protocol`` is asked to test."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bettong.harness.catalog import find
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
    """A program, its nodes, and the EOT, EFF and crashes that are taken when none are given."""

    program: RoundProgram
    nodes: tuple[str, ...]
    bounds: tuple[int, int, int] = BOUNDS


def load_program(names: tuple[str, ...], nodes: tuple[str, ...]) -> Loaded:
    """The program of a shipped name, ``module:Class``, ``file.py:Class``, or of ``.ded`` files.

    Raises UsageError when there is none.
    """
    if all(name.endswith(".ded") for name in names):
        program = load([Path(name) for name in names], nodes)
        return Loaded(program, program.nodes)
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
    return Loaded(Simulation(protocol, _title(name)), tuple(protocol.nodes), protocol.bounds)


def _title(name: str) -> str:
    return name.rsplit(":", 1)[-1]


def _class_of(name: str) -> type[Protocol]:
    place, wanted = name.rsplit(":", 1)
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    known = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Protocol) and value is not Protocol
    }
    if wanted not in known:
        hint = did_you_mean(wanted, known) or f"there is {', '.join(known) or 'none'}"
        raise UsageError(f"no protocol {wanted} in {place}; {hint}")
    return known[wanted]


def _module(name: str) -> ModuleType:
    with guarded(name):
        return importlib.import_module(name)


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with guarded(str(path)):
        spec.loader.exec_module(module)
    return module
