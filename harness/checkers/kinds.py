"""The kinds of anomalies: what each leaves of a guarantee, and how it is said of a message.

Those that ship are here; a checker of a package brings its own::

    @finds(Kind("Gap", leaves="at-most-once", clause="was left out"))
    def check_no_gaps(history): ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bettong.lineage.errors import BettongError
from bettong.lineage.results import Guarantee

C = TypeVar("C", bound=Callable[..., object])


class AnomalyKindError(BettongError):
    """A kind of anomaly that cannot be registered."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    Attributes:
        name: as anomalies have it, in CamelCase.
        leaves: the strongest level that holds although it was seen.
        clause: what is said after a message's id.
        passing: in the end it is gone, so that beside a loss it lowers nothing further.
    """

    name: str
    leaves: Guarantee
    clause: str
    passing: bool = False


SHIPPED = (
    Kind("Loss", "at-most-once", "is missing"),
    Kind("Duplicate", "at-least-once", "came more than once"),
    Kind("Reorder", "effectively-once", "came out of order"),
    Kind("Phantom", "none", "was never to be"),
    Kind("Corrupt", "none", "has the wrong content"),
    Kind("Torn", "at-least-once", "was seen in part", passing=True),
    Kind("StateDivergence", "none", "has the wrong state"),
    Kind("Stuck", "at-most-once", "never came to an end"),
    Kind(
        "Died",
        "effectively-once",
        "needed a process to be started again that had ended by itself",
    ),
    Kind("Leak", "effectively-once", "is kept although nobody wants it any more"),
    Kind("Violation", "none", "Violation"),
)
_known = {kind.name: kind for kind in SHIPPED}


def finds(*kinds: Kind) -> Callable[[C], C]:
    """The kinds of its own that a checker finds; raises AnomalyKindError for one that is known as
    something else, or whose name results cannot hold."""
    for kind in kinds:
        if not (kind.name.isascii() and kind.name.isalpha() and kind.name[:1].isupper()):
            raise AnomalyKindError(f"{kind.name!r} is no kind of anomaly: write it in CamelCase")
        if _known.setdefault(kind.name, kind) != kind:
            raise AnomalyKindError(f"two kinds of anomalies are called {kind.name}: rename one")
    return lambda checker: checker


def kind_of(name: str) -> Kind:
    """The kind of that name; one that nobody has registered leaves nothing."""
    return _known.get(name) or Kind(name, "none", name)
