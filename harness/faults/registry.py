"""The kinds of faults by name: those that ship, those of packages that are installed, and those
that a program registers::

    @register
    @dataclass(frozen=True, slots=True)
    class Freeze(Fault): ...

A package names its kinds in the entry point group ``bettong.faults``, each by its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from typing import Any, TypeVar

from bettong.harness.faults.entry import Entry
from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds import SHIPPED
from bettong.lineage.errors import BettongError
from bettong.lineage.nearest import one_of

GROUP = "bettong.faults"

F = TypeVar("F", bound=type[Fault])

_registered: dict[str, type[Fault]] = {}


class FaultKindError(BettongError):
    """A kind of fault that cannot be registered."""


def register(kind: F) -> F:
    """Have schedule files and searches know this kind; raises FaultKindError when another kind
    has its name."""
    _add(_registered, kind)
    return kind


def kinds() -> Mapping[str, type[Fault]]:
    """All kinds by name, in the order in which a search tries them; raises FaultKindError."""
    return {**_installed(), **_registered}


def parse_fault(value: Any, where: str) -> Fault:
    """The fault that a schedule file's entry ``{KIND: {FIELD: …}}`` stands for.

    Args:
        where: what errors begin with, e.g. ``fault 2``.

    Raises ScheduleError.
    """
    if not isinstance(value, dict) or len(value) != 1:
        raise ScheduleError(f"{where}: expected one fault such as {{crash: {{node: …}}}}")
    ((name, fields),) = value.items()
    known = kinds()
    kind = known[one_of(str(name), tuple(known), f"{where}: fault", ScheduleError)]
    return kind.parse(Entry(fields, f"{where}, {name}", kind.needed, kind.optional))


def to_entry(fault: Fault) -> dict[str, Any]:
    """The entry of a schedule file for a fault."""
    return {fault.kind: fault.to_dict()}


@cache
def _installed() -> Mapping[str, type[Fault]]:
    found: dict[str, type[Fault]] = {}
    for kind in (*SHIPPED, *_from_packages()):
        _add(found, kind)
    return found


def _from_packages() -> Iterable[type[Fault]]:
    for point in metadata.entry_points(group=GROUP):
        try:
            kind = point.load()
        except Exception as e:
            raise FaultKindError(f"the fault {point.name} ({point.value}) fails: {e}") from e
        yield kind


def _add(known: dict[str, type[Fault]], kind: type[Fault]) -> None:
    if not (isinstance(kind, type) and issubclass(kind, Fault)):
        raise FaultKindError(f"{kind!r} is no kind of fault: derive it from Fault")
    shipped = {s.kind: s for s in SHIPPED}
    other = known.get(kind.kind, shipped.get(kind.kind, kind))
    if other is not kind:
        raise FaultKindError(f"{kind.__name__} and {other.__name__} are both called {kind.kind!r}")
    known[kind.kind] = kind
