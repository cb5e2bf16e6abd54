"""Which mutants there are, which of them count, and which are drawn."""

from __future__ import annotations

import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import resources

from bettong.lineage.errors import UsageError
from bettong.scenarios.benchmarks.mutants.operators import Mutant, mutants_of
from bettong.scenarios.benchmarks.mutants.overlay import modules_of, source_of
from bettong.scenarios.sinks.shipped import SHIPPED

ENGINE = "engine"
_SINKS = "scenarios/sinks/"
_LISTED = "equivalent.toml"


def sinks_of(path: str) -> tuple[str, ...]:
    """Targets of the right sinks that a module holds."""
    module = f"bettong.{path.removesuffix('.py').replace('/', '.')}"
    return tuple(
        sink.name
        for sink in SHIPPED
        if sink.level == "effectively-once" and sink.name.partition(":")[0] == module
    )


def paths() -> list[str]:
    """The modules that mistakes are put into: the engine's, and those of right sinks."""
    return [*modules_of(ENGINE), *(p for p in modules_of("scenarios") if sinks_of(p))]


def population(only: str | None = None) -> list[Mutant]:
    """Every mutant, in the order of the modules; of one module or folder where that is asked for.

    Raises UsageError where that holds no module.
    """
    chosen = [path for path in paths() if only is None or _within(path, only.rstrip("/"))]
    if not chosen:
        raise UsageError(
            f"--only {only}: there is no such module to be mutated; write a path in the package, "
            f"such as engine/storage or {_SINKS}files.py"
        )
    return [mutant for path in chosen for mutant in mutants_of(path, source_of(path))]


def _within(path: str, only: str) -> bool:
    return path == only or path.startswith(f"{only}/")


def of_operator(mutants: Iterable[Mutant], operator: str) -> list[Mutant]:
    """The mutants of one operator, by the name that the bench prints.

    Raises UsageError where no mutant is of it.
    """
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        kinds[mutant.kind].append(mutant)
    if operator not in kinds:
        raise UsageError(f"--operator {operator}: there is none; choose of {', '.join(kinds)}")
    return kinds[operator]


def equivalents() -> Mapping[str, str]:
    """Patterns of ids of mutants that do what the right code does, as far as any output or record
    goes, each with the reason."""
    text = resources.files(__package__).joinpath(_LISTED).read_text("utf-8")
    found: Mapping[str, str] = tomllib.loads(text)["equivalent"]
    return found


def equivalent(mutant: Mutant, known: Mapping[str, str]) -> str:
    """Why a mutant is no mistake; empty where it is one."""
    for pattern, reason in known.items():
        if mutant.id == pattern or fnmatchcase(mutant.id, pattern):
            return reason
    return ""


def draw(mutants: Iterable[Mutant], sample: int | None, seed: int) -> Sequence[Mutant]:
    """So many mutants, as evenly over the operators as they allow; all of them without a number.

    A smaller sample is the beginning of a larger one of the same seed.
    """
    if sample is None:
        return list(mutants)
    chance = random.Random(seed)
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        kinds[mutant.kind].append(mutant)
    for kind in kinds.values():
        chance.shuffle(kind)
    drawn: list[Mutant] = []
    while kinds and len(drawn) < sample:
        for name in sorted(kinds):
            drawn.append(kinds[name].pop())
            if not kinds[name]:
                del kinds[name]
    return drawn[:sample]
